// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Helpers for making and passing on a Status. The types themselves are public: tenonnx/base.h.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "tenonnx/base.h"

namespace tenonnx {

#define TENONNX_DEFINE_ERROR(Name)                                                        \
  template <typename... Args>                                                             \
  Status Name(fmt::format_string<Args...> format, Args&&... args) {                       \
    return Status(StatusCode::k##Name, fmt::format(format, std::forward<Args>(args)...)); \
  }

TENONNX_DEFINE_ERROR(InvalidArgument)
TENONNX_DEFINE_ERROR(NotFound)
TENONNX_DEFINE_ERROR(FailedPrecondition)
TENONNX_DEFINE_ERROR(Unsupported)
TENONNX_DEFINE_ERROR(DataLoss)
TENONNX_DEFINE_ERROR(Io)
TENONNX_DEFINE_ERROR(Internal)
#undef TENONNX_DEFINE_ERROR

#define TENONNX_CONCAT_INNER(a, b) a##b
#define TENONNX_CONCAT(a, b) TENONNX_CONCAT_INNER(a, b)

// Returns from the enclosing function where `expr` (a Status) is not ok.
#define TENONNX_RETURN_IF_ERROR(expr)                  \
  do {                                                 \
    ::tenonnx::Status tenonnx_status_ = (expr);        \
    if (!tenonnx_status_.ok()) return tenonnx_status_; \
  } while (false)

// TENONNX_ASSIGN_OR_RETURN(auto x, make_x()); assigns the value, or returns the Status.
#define TENONNX_ASSIGN_OR_RETURN(lhs, expr) \
  TENONNX_ASSIGN_OR_RETURN_IMPL(TENONNX_CONCAT(tenonnx_result_, __LINE__), lhs, expr)
#define TENONNX_ASSIGN_OR_RETURN_IMPL(result, lhs, expr) \
  auto result = (expr);                                  \
  if (!result.ok()) return result.status();              \
  lhs = std::move(result).value()

}  // namespace tenonnx
