// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The usual mistakes at the boundary of a model, tried out before anything else is looked at. Given
// what the other side answered for an image, the side that can be run is fed with that image as if
// each mistake had been made; a mistake whose outputs are those of the other side explains it.
//
// Tried: BGR for RGB; not divided by 255, divided twice; mean and std left out, applied twice,
// ImageNet's where the contract has none; the other resize kind; stretch for letterbox and back;
// NHWC data read as NCHW and back; orig_target_sizes as [h,w] for [w,h], as the size of the model's
// input, in the other integer width (all y are 0). One of the image and one of the size together,
// colour and normalisation together.
#pragma once

#include <string>
#include <vector>

#include "flow/detection_agreement.h"
#include "ort/executor.h"
#include "tenonnx/contract.h"
#include "tenonnx/pipeline.h"

namespace tenonnx {

struct ContractFinding {
  std::string mistake;             // "color_order", "normalization", "resize", "layout", "size"
  std::string sentence;            // for people, with the figures
  DetectionAgreement as_contract;  // what the two sides agree when fed after the contract
  DetectionAgreement as_mistaken;  // and with the mistake
};

struct ContractExplanation {
  // Empty: no mistake that was tried explains the difference, or there is none. Several: each has a
  // part in it.
  std::vector<ContractFinding> findings;
  // Why a mistake could not be tried on this image: "the order of 'orig_target_sizes': the image is
  // square".
  std::vector<std::string> not_tried;
  // What the two sides agree when both are fed after the contract.
  DetectionAgreement as_contract;
  int runs = 0;  // of the runnable side
};

struct ContractSides {
  std::string runnable = "reference";  // how the sentences call the two
  std::string other = "candidate";
};

// `runnable`: the whole model, inputs and outputs by the contract's names (more outputs do no
// harm). `image`: the original, as the other side was given it. `other_outputs`: by the contract's
// names. A mistake is named where it brings the two sides at least 4 times nearer than the contract
// does, and within a distance of 0.1: noise, which no mistake takes away, does not. InvalidArgument
// or DataLoss where an output is missing or cannot be decoded; FailedPrecondition where the other
// side detected nothing.
Result<ContractExplanation> explain_contract_errors(const Contract& contract, LoadedGraph& runnable,
                                                    const ImageView& image,
                                                    const TensorMap& other_outputs,
                                                    const ContractSides& sides = {});

}  // namespace tenonnx
