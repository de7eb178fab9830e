// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Detections from an image, with a model package:
//
//   tenonnx::PipelineConfig config;
//   config.package = "model-package";
//   tenonnx::Pipeline pipeline(config);
//   if (auto status = pipeline.init(); !status.ok()) { ... status.message() ... }
//   tenonnx::Pipeline::Tensors inputs, outputs;    // one pair a thread
//   pipeline.pre_process(image, inputs);
//   pipeline.infer(inputs, outputs);
//   pipeline.post_process(outputs, detections);
//
// After init() the three steps are const and may be called from several threads on one Pipeline,
// each with tensors of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tenonnx/base.h"
#include "tenonnx/contract.h"
#include "tenonnx/detection.h"

namespace tenonnx {

// Pixel formats of pre_process. Others are refused with an error.
enum class ImageFormat { kRgb8, kBgr8, kGray8, kRgba8, kBgra8, kNv12, kUnknown };

// Borrowed pixels; row-major, `stride` bytes from row to row (0: packed).
struct ImageView {
  const std::uint8_t* data = nullptr;
  int width = 0;   // pixels
  int height = 0;  // pixels
  int stride = 0;  // bytes
  ImageFormat format = ImageFormat::kRgb8;
};

struct SchedulingParams {
  int intra_op_threads = 0;  // 0: the runtime's default, one per physical core
  int inter_op_threads = 1;
  bool spinning = false;
};

struct PipelineConfig {
  std::string package;  // a directory that `tenonnx deploy` wrote
  float score_threshold = 0.25F;
  bool allow_failed_package = false;  // run a package whose verdict is FAIL
  bool check_versions = true;         // refuse a runtime older than the one that the evidence names
  SchedulingParams scheduling;
};

class TENONNX_API Pipeline {
 public:
  // What crosses from one step to the next; owned by the caller and reused from image to image, so
  // that nothing is allocated after the first. A copy shares the memory: clone() tensors to keep
  // them. Inputs: the image, then the size. Outputs: those that the contract names, in its order,
  // then boundary tensors.
  struct Tensors {
    std::vector<Tensor> values;
    int original_width = 0;
    int original_height = 0;
  };

  // Light: opens nothing, allocates nothing.
  explicit Pipeline(PipelineConfig config);
  ~Pipeline();
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;

  // Opens the package, checks every hash, creates the sessions. Everything else fails with
  // FailedPrecondition until this has succeeded.
  Status init();

  // Pixels to the model's inputs, after the contract. Unsupported when the format is not one of
  // ImageFormat's; InvalidArgument for an empty image or a stride below a row.
  Status pre_process(const ImageView& image, Tensors& inputs) const;
  // Runs the segments one after the other.
  Status infer(const Tensors& inputs, Tensors& outputs) const;
  // Above PipelineConfig::score_threshold, highest score first. NaN scores are an error.
  Status post_process(const Tensors& outputs, std::vector<Detection>& detections) const;
  // The three in a row.
  Status run(const ImageView& image, std::vector<Detection>& detections) const;

  // Of the package, after init().
  const Contract& contract() const;
  const std::string& verdict() const;  // "PASS", "FAIL", "INCONCLUSIVE"; "" before init()
  const PipelineConfig& config() const;

 private:
  struct State;
  PipelineConfig config_;
  std::unique_ptr<State> state_;
};

}  // namespace tenonnx
