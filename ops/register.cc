// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// libtenonnx_ops.so: the one function that ONNX Runtime looks for. It is compiled into the library
// alone, and the library links no ONNX Runtime: it uses the one that loads it.
#include <mutex>

#include "kernels/library.h"

namespace tenonnx::kernels {
namespace {

// The first version with all that the operators call (shape inference of custom operators and
// ParallelFor); later ones keep it.
constexpr std::uint32_t kApiVersion = 18;

struct Registered {
  CustomOps ops = all_ops();
  Ort::CustomOpDomain domain{kDomain};
  Registered() {
    for (const auto& op : ops) domain.Add(op.get());
  }
};

}  // namespace
}  // namespace tenonnx::kernels

extern "C" __attribute__((visibility("default"))) OrtStatus* ORT_API_CALL
RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base) {
  const OrtApi* api = base->GetApi(tenonnx::kernels::kApiVersion);
  if (api == nullptr) return nullptr;  // an ONNX Runtime without this API has no way to say why
  Ort::InitApi(api);
  try {
    // Never destroyed: sessions may outlive everything else of the process.
    static const auto* registered = new tenonnx::kernels::Registered();
    Ort::UnownedSessionOptions(options).Add(registered->domain);
    return nullptr;
  } catch (const Ort::Exception& error) {
    return Ort::Status(error).release();
  } catch (const std::exception& error) {
    return Ort::Status(error.what(), ORT_FAIL).release();
  }
}
