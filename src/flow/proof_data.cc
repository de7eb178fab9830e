// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/proof_data.h"

#include <algorithm>

#include "base/status.h"

namespace tenonnx {

ProofData region_data(const TensorInputs& inputs) {
  constexpr std::size_t kRegionInputs = 2;
  ProofData data;
  data.count = std::min(inputs.size(), inputs.is_random() ? std::size_t{1} : kRegionInputs);
  data.load = [&inputs](std::size_t k) -> Result<TensorMap> {
    TENONNX_ASSIGN_OR_RETURN(ReferenceInput input, inputs.load(k));
    return std::move(input.tensors);
  };
  data.name = [&inputs](std::size_t k) {
    const auto input = inputs.load(k);
    return input.ok() ? input->name : std::string("input");
  };
  data.description = inputs.description();
  return data;
}

}  // namespace tenonnx
