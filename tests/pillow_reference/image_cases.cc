// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Does what pillow_reference_test.py asks for. Jobs come as lines on standard input:
//   pillow 12|13                                              which Pillow to follow from here on
//   resize IN WIDTH HEIGHT CHANNELS TO_WIDTH TO_HEIGHT OUT    IN: raw bytes; OUT: an .npy
//   file IN TO_WIDTH TO_HEIGHT OUT                            IN: an image file; 0 0: as it is
//   tensor CONTRACT IN OUT                                    the image input, after the contract
// Stops with exit code 1 and a message at the first that fails.
#include <iostream>
#include <sstream>
#include <string>

#include "base/files.h"
#include "base/npy.h"
#include "base/status.h"
#include "contract/contract.h"
#include "pipeline/image_file.h"
#include "pipeline/preprocess.h"
#include "pipeline/resize.h"

namespace tenonnx {
namespace {

PillowPasses passes = PillowPasses::kAsPillow13;

Status write(const std::string& path, const Image& image) {
  return write_npy(
      path, Tensor::from(DType::kUInt8, {image.height, image.width, image.channels}, image.pixels));
}

Status resize_job(std::istream& line) {
  std::string in, out;
  int width = 0, height = 0, channels = 0, to_width = 0, to_height = 0;
  line >> in >> width >> height >> channels >> to_width >> to_height >> out;
  TENONNX_ASSIGN_OR_RETURN(const std::string bytes, read_file(in));
  Image image(width, height, channels);
  if (bytes.size() != image.pixels.size()) return InvalidArgument("{}: wrong size", in);
  image.pixels.assign(bytes.begin(), bytes.end());
  TENONNX_ASSIGN_OR_RETURN(const Image resized,
                           resize_pillow_bilinear(image, to_width, to_height, passes));
  return write(out, resized);
}

Status file_job(std::istream& line) {
  std::string in, out;
  int width = 0, height = 0;
  line >> in >> width >> height >> out;
  TENONNX_ASSIGN_OR_RETURN(Image image, read_image(in));
  if (width > 0) {
    TENONNX_ASSIGN_OR_RETURN(image, resize_pillow_bilinear(image, width, height, passes));
  }
  return write(out, image);
}

Status tensor_job(std::istream& line) {
  std::string contract_path, in, out;
  line >> contract_path >> in >> out;
  TENONNX_ASSIGN_OR_RETURN(const Contract contract, read_contract(contract_path));
  TENONNX_ASSIGN_OR_RETURN(const Preprocessor preprocessor, Preprocessor::create(contract));
  TENONNX_ASSIGN_OR_RETURN(const Image image, read_image(in));
  Tensor tensor;
  TENONNX_RETURN_IF_ERROR(preprocessor.image_tensor(view_of(image), tensor));
  return write_npy(out, tensor);
}

Status run(const std::string& text) {
  std::istringstream line(text);
  std::string job;
  line >> job;
  if (job == "pillow") {
    int version = 0;
    line >> version;
    passes = version <= 12 ? PillowPasses::kAsPillow12 : PillowPasses::kAsPillow13;
    return {};
  }
  if (job == "resize") return resize_job(line);
  if (job == "file") return file_job(line);
  if (job == "tensor") return tensor_job(line);
  return InvalidArgument("unknown job '{}'", job);
}

}  // namespace
}  // namespace tenonnx

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    if (const tenonnx::Status status = tenonnx::run(line); !status.ok()) {
      std::cerr << line << ": " << status.message() << "\n";
      return 1;
    }
  }
  return 0;
}
