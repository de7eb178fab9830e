// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// ONNX Runtime's errors made understandable: what failed, at which node, why, what to do. The
// original text follows in parentheses, so that it can be searched for.
#pragma once

#include <string>
#include <string_view>

#include "model/model.h"
#include "tenonnx/base.h"

namespace tenonnx {

enum class OrtStage { kLoad, kRun };

// `code` is an OrtErrorCode. `model`, where there is one, tells dtypes, shapes and names that
// ONNX Runtime leaves out. `inputs` describes what a run was given ("x float32 [1,3]; ...").
//
// Unsupported: opset or IR version too new, unknown operator or domain, no kernel for a dtype, a
// node that would fall back to the CPU. InvalidArgument: dtypes or shapes that do not fit, a graph
// that is not valid. DataLoss: bytes that are no model, external data that do not reach. Internal:
// everything else.
Status explain_ort_error(OrtStage stage, int code, std::string_view text,
                         const Model* model = nullptr, std::string_view inputs = {});

}  // namespace tenonnx
