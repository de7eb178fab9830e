// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What the two sides of a comparison are fed with: images after the contract's preprocessing, or
// seeded random values where there are none. Made one at a time, so that a thousand images need the
// memory of one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/preprocess.h"
#include "tenonnx/base.h"
#include "tenonnx/contract.h"

namespace tenonnx {

struct ReferenceInput {
  std::string name;  // the image's file name; "random 0"
  int width = 0;     // pixels of the original image
  int height = 0;
  TensorMap tensors;   // by the names of the model's inputs
  std::string sha256;  // of the tensors: input_sha256
};

class InputSource {
 public:
  // The images (.jpg, .png, .ppm) of a folder by rising name, or one image file; at most `limit` of
  // them, 0 for all. NotFound where there is none.
  static Result<InputSource> from_images(const std::filesystem::path& images, Contract contract,
                                         std::size_t limit = 0);
  // `count` inputs, uniform in the contract's range for the image, in [0,1) for other floats; the
  // size is that of the model's input. The same seed gives the same values on every machine.
  // InvalidArgument where an input has a dynamic dimension.
  static Result<InputSource> random(const std::vector<TensorInfo>& inputs, Contract contract,
                                    std::size_t count, std::uint64_t seed);

  std::size_t size() const { return random_ ? count_ : files_.size(); }
  bool is_random() const { return random_; }
  // The images' files; none for random inputs.
  const std::vector<std::filesystem::path>& files() const { return files_; }
  // Where labels are looked for; empty for random inputs.
  std::filesystem::path folder() const;
  // "20 images of 'held-out'", "2 random inputs (seed 1)"
  std::string description() const;
  Result<ReferenceInput> load(std::size_t index) const;

 private:
  explicit InputSource(Contract contract) : contract_(std::move(contract)) {}
  Result<ReferenceInput> load_random(std::size_t index) const;

  Contract contract_;
  std::optional<Preprocessor> preprocessor_;  // for images
  std::vector<std::filesystem::path> files_;
  bool random_ = false;
  std::vector<TensorInfo> infos_;
  std::size_t count_ = 0;
  std::uint64_t seed_ = 0;
};

// docs/reference/package.md, "Hash of the reference inputs".
std::string input_sha256(const TensorMap& tensors);
std::string inputs_sha256(const std::vector<std::string>& hashes);

}  // namespace tenonnx
