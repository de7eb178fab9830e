// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// usage: consumer PACKAGE
// Runs the package on a grey image, with nothing but the installed library and its headers.
#include <tenonnx/base.h>
#include <tenonnx/pipeline.h>

#include <cstdio>
#include <vector>

namespace {

int fail(const char* what, const tenonnx::Status& status) {
  std::fprintf(stderr, "consumer: %s: %s\n", what, status.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto tensor = tenonnx::Tensor::from<float>(tenonnx::DType::kFloat32, {2, 2}, {1, 2, 3, 4});
  if (tensor.size() != 4 || tenonnx::to_string(tensor.shape()) != "[2,2]") {
    std::fprintf(stderr, "consumer: a tensor of 2 by 2 is %s\n",
                 tenonnx::to_string(tensor.shape()).c_str());
    return 1;
  }

  tenonnx::PipelineConfig config;
  config.package = "/nowhere/model-package";
  tenonnx::Pipeline missing(config);
  const tenonnx::Status refused = missing.init();
  if (refused.ok() || refused.message().find("/nowhere/model-package") == std::string::npos)
    return fail("a missing package must be refused by name", refused);

  config.package = argv[1];
  tenonnx::Pipeline pipeline(config);
  if (auto status = pipeline.init(); !status.ok()) return fail("init", status);
  const int width = 320;
  const int height = 240;
  const std::vector<std::uint8_t> pixels(static_cast<std::size_t>(width) * height * 3, 128);
  std::vector<tenonnx::Detection> detections;
  const tenonnx::ImageView image{pixels.data(), width, height, 0, tenonnx::ImageFormat::kRgb8};
  if (auto status = pipeline.run(image, detections); !status.ok()) return fail("run", status);
  std::printf("tenonnx %s: %zu detections\n", std::string(tenonnx::version()).c_str(),
              detections.size());
  return 0;
}
