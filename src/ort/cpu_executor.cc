// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/executor.h"
#include "ort/library.h"
#include "ort/session.h"

namespace tenonnx {
namespace {

class CpuExecutor final : public Executor {
 public:
  const std::string& address() const override { return address_; }

  Result<std::unique_ptr<LoadedGraph>> load(const Model& model,
                                            const LoadOptions& options) const override {
    return load_session(model, options, {});
  }

  std::vector<std::pair<std::string, std::string>> versions() const override {
    const auto runtime = onnxruntime();
    return {{"onnxruntime", runtime.ok() ? (*runtime)->version : "not available"}};
  }

 private:
  std::string address_ = "cpu";
};

}  // namespace

std::unique_ptr<Executor> make_cpu_executor() { return std::make_unique<CpuExecutor>(); }

}  // namespace tenonnx
