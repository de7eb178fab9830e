// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/status.h"

namespace tenonnx {

std::string_view to_string(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kFailedPrecondition:
      return "failed precondition";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kDataLoss:
      return "data loss";
    case StatusCode::kIo:
      return "input/output";
    case StatusCode::kInternal:
      return "internal";
  }
  return "unknown";
}

Status Status::at(std::string_view where) const {
  if (ok()) return *this;
  return Status(code_, fmt::format("{}: {}", where, message_));
}

}  // namespace tenonnx
