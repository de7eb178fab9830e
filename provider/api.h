// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The edge to ONNX Runtime: what is called from C gives an OrtStatus, and nothing is thrown over
// it.
#pragma once

#include <onnxruntime_cxx_api.h>

#include <cstdint>
#include <exception>
#include <string>

#include "tenonnx/base.h"

namespace tenonnx::simnpu {

// The name by which sessions know the provider; options arrive as "ep.<this in lower case>.<key>".
inline constexpr const char* kProviderName = "SimNpuExecutionProvider";
inline constexpr const char* kOptionPrefix = "ep.simnpuexecutionprovider.";
inline constexpr const char* kVendor = "tenonnx";
inline constexpr std::uint32_t kVendorId = 0x544E;  // "TN": of no PCI vendor

inline const OrtEpApi& ep_api() { return *Ort::GetApi().GetEpApi(); }

// nullptr where it is ok.
inline OrtStatus* to_ort(const Status& status) {
  if (status.ok()) return nullptr;
  const bool precondition =
      status.code() == StatusCode::kFailedPrecondition || status.code() == StatusCode::kUnsupported;
  return Ort::Status((std::string(kProviderName) + ": " + status.message()).c_str(),
                     precondition ? ORT_NOT_IMPLEMENTED : ORT_EP_FAIL)
      .release();
}

// Runs `body`, a function that returns a Status and may throw.
template <typename Body>
OrtStatus* guarded(Body body) noexcept {
  try {
    return to_ort(body());
  } catch (const Ort::Exception& error) {
    return Ort::Status(error).release();
  } catch (const std::exception& error) {
    return Ort::Status(error.what(), ORT_EP_FAIL).release();
  }
}

// The Status of a call of the C++ interface.
inline Status from_ort(const Ort::Status& status) {
  if (status.IsOK()) return {};
  return {StatusCode::kInternal, status.GetErrorMessage()};
}

}  // namespace tenonnx::simnpu
