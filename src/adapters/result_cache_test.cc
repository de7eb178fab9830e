// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/result_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "base/files.h"
#include "base/temporary_directory.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;

Tensor numbers(const Shape& shape, std::vector<float> values) {
  return Tensor::from(DType::kFloat32, shape, values);
}

class ResultCacheTest : public ::testing::Test {
 protected:
  const TemporaryDirectory dir_;
  const std::vector<TensorInfo> infos_ = {{"a/y", DType::kFloat32, {2}, true}};
  const std::vector<Tensor> x_ = {numbers({2}, {1, 2})};
  const std::vector<Tensor> y_ = {numbers({2}, {3, 4})};
};

TEST_F(ResultCacheTest, GivesBackWhatItWasGiven) {
  const ResultCache cache(dir_.path(), "graph");
  const std::string key = cache.key(x_);
  EXPECT_TRUE(cache.find(key, infos_).empty());
  cache.keep(key, infos_, y_);
  const auto found = ResultCache(dir_.path(), "graph").find(key, infos_);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].data<float>()[1], 4);
}

TEST_F(ResultCacheTest, TheKeyHoldsGraphAndInputs) {
  const ResultCache cache(dir_.path(), "graph");
  EXPECT_NE(cache.key(x_), ResultCache(dir_.path(), "other").key(x_));
  EXPECT_NE(cache.key(x_), cache.key(y_));
  EXPECT_NE(cache.key(x_), cache.key(std::vector<Tensor>{numbers({1, 2}, {1, 2})}));
  EXPECT_EQ(cache.key(x_), ResultCache({}, "graph").key(x_));
}

TEST_F(ResultCacheTest, ADamagedEntryIsNone) {
  const ResultCache cache(dir_.path(), "graph");
  const std::string key = cache.key(x_);
  cache.keep(key, infos_, y_);
  const fs::path file = dir_.path() / (key + ".npz");
  ASSERT_TRUE(fs::exists(file));
  fs::resize_file(file, fs::file_size(file) / 2);
  EXPECT_TRUE(cache.find(key, infos_).empty());
  cache.keep(key, infos_, y_);
  EXPECT_EQ(cache.find(key, infos_).size(), 1U);
  const std::vector<TensorInfo> longer = {{"a/y", DType::kFloat32, {3}, true}};
  EXPECT_TRUE(cache.find(key, longer).empty()) << "of another shape";
}

TEST_F(ResultCacheTest, TheOldestGo) {
  ResultCache cache(dir_.path(), "graph");
  const std::string first = cache.key(x_), second = cache.key(y_);
  cache.keep(first, infos_, y_);
  const auto bytes = fs::file_size(dir_.path() / (first + ".npz"));
  fs::last_write_time(dir_.path() / (first + ".npz"),
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  cache.set_limit(bytes + bytes / 2);
  cache.keep(second, infos_, x_);
  EXPECT_TRUE(cache.find(first, infos_).empty());
  EXPECT_EQ(cache.find(second, infos_).size(), 1U);
}

TEST_F(ResultCacheTest, WithoutADirectoryNothingIsKept) {
  const ResultCache cache({}, "graph");
  cache.keep(cache.key(x_), infos_, y_);
  EXPECT_TRUE(cache.find(cache.key(x_), infos_).empty());
}

}  // namespace
}  // namespace tenonnx
