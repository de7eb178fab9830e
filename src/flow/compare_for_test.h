// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What the tests of `compare` share: models and tensors in a temporary directory, and a comparison.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/npy.h"
#include "base/temporary_directory.h"
#include "flow/compare.h"
#include "model/parse_for_test.h"

namespace tenonnx {

inline Tensor floats(Shape shape, const std::vector<float>& values) {
  return Tensor::from<float>(DType::kFloat32, std::move(shape), values);
}

// Uniform in [low, high): the same on every machine.
inline Tensor uniform(Shape shape, double low, double high, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  Tensor t(DType::kFloat32, std::move(shape));
  for (std::int64_t i = 0; i < t.size(); ++i)
    t.mutable_data<float>()[i] =
        static_cast<float>(low + (high - low) * (static_cast<double>(engine() >> 11) * 0x1p-53));
  return t;
}

class CompareFixture : public ::testing::Test {
 protected:
  std::filesystem::path save(const std::string& name, const std::string& text) const {
    std::filesystem::path path = temporary_.path() / name;
    EXPECT_TRUE(parse_model(text.c_str()).save(path).ok());
    return path;
  }
  std::filesystem::path save(const std::string& name, const TensorMap& tensors) const {
    std::filesystem::path path = temporary_.path() / name;
    EXPECT_TRUE(write_npz(path, tensors).ok());
    return path;
  }
  CompareOptions options(const std::filesystem::path& reference, const TensorMap& inputs) const {
    CompareOptions out;
    out.reference = reference;
    out.inputs = save("inputs.npz", inputs);
    out.cache = "none";
    out.load.intra_op_threads = 1;
    return out;
  }
  // A device that stores float16 and overflows to infinity, as "sim:toy16".
  void make_device() const {
    const auto entry = [](const std::string& value) {
      return "{\"value\": " + value + ", \"source\": \"made up\", \"checked\": \"2026-11\"}";
    };
    std::ofstream file(temporary_.path() / "toy16.json");
    file << R"({"schema_version": 1, "name": "toy16", "title": "toy", "source": "made up",)"
         << R"( "checked": "2026-11", "arithmetic": {"storage": )" << entry("\"float16\"");
    for (const char* name : {"round_inputs", "round_weights", "round_outputs"})
      file << ", \"" << name << "\": " << entry("true");
    for (const char* name :
         {"overflow_elementwise", "overflow_matmul_result", "overflow_matmul_operand"})
      file << ", \"" << name << "\": " << entry("\"infinity\"");
    file << ", \"subnormals\": " << entry("\"keep\"") << "}}";
    file.close();
    ::setenv("TENONNX_DEVICES", temporary_.path().c_str(), 1);
  }
  void TearDown() override { ::unsetenv("TENONNX_DEVICES"); }

  static CompareResult run(const CompareOptions& options) {
    auto result = compare(options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? std::move(*result) : CompareResult();
  }
  static const ComparedTensor& at(const CompareResult& result, const std::string& name) {
    static const ComparedTensor none;
    for (const ComparedTensor& tensor : result.tensors)
      if (tensor.plan.tensor.name == name) return tensor;
    ADD_FAILURE() << "no tensor " << name;
    return none;
  }
  TemporaryDirectory temporary_;
};

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace tenonnx
