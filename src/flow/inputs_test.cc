// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "flow/deploy.h"
#include "flow/evidence.h"
#include "pipeline/image_file.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

Contract contract_of(Shape shape) {
  Contract contract;
  contract.image.shape = std::move(shape);
  contract.size = SizeInput{};
  contract.classes = {"a"};
  return contract;
}

TEST(InputHash, IsTheDocumentedText) {
  TensorMap tensors;
  tensors.emplace("b", Tensor::from<std::uint8_t>(DType::kUInt8, {2}, {7, 8}));
  tensors.emplace("a", Tensor::from<std::int64_t>(DType::kInt64, {1, 1}, {1}));
  const std::string text =
      std::string("a int64 [1,1]\n") + '\1' + std::string(7, '\0') + "b uint8 [2]\n\x07\x08";
  EXPECT_EQ(input_sha256(tensors), sha256_hex(text));
  EXPECT_EQ(inputs_sha256({"aa", "bb"}), sha256_hex("aa\nbb\n"));
}

TEST(RandomInputs, AreSeededAndInRange) {
  const std::vector<TensorInfo> infos = {{"images", DType::kFloat32, {1, 3, 8, 16}},
                                         {"orig_target_sizes", DType::kInt64, {1, 2}}};
  const auto a = InputSource::random(infos, contract_of({1, 3, 8, 16}), 2, 5);
  const auto b = InputSource::random(infos, contract_of({1, 3, 8, 16}), 2, 6);
  ASSERT_TRUE(a.ok() && b.ok());
  const auto first = a->load(0);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(first->sha256, a->load(0)->sha256);
  EXPECT_NE(first->sha256, a->load(1)->sha256);
  EXPECT_NE(first->sha256, b->load(0)->sha256);
  const Tensor& image = first->tensors.at("images");
  double sum = 0;
  for (std::int64_t i = 0; i < image.size(); ++i) {
    ASSERT_GE(image.data<float>()[i], 0);
    ASSERT_LT(image.data<float>()[i], 1);
    sum += image.data<float>()[i];
  }
  // The mean of 384 uniform values: 0.5 with a standard deviation of 0.0147; 5 of them.
  EXPECT_NEAR(sum / 384, 0.5, 0.074);
  const auto* size = first->tensors.at("orig_target_sizes").data<std::int64_t>();
  EXPECT_EQ(size[0], 16);  // [W,H]
  EXPECT_EQ(size[1], 8);
  EXPECT_FALSE(a->load(2).ok());
}

TEST(RandomInputs, NeedAFixedShape) {
  const auto source = InputSource::random({{"images", DType::kFloat32, {-1, 3, 8, 8}}},
                                          contract_of({1, 3, 8, 8}), 1, 1);
  ASSERT_FALSE(source.ok());
  EXPECT_THAT(source.status().message(), HasSubstr("--input-shape images="));
}

TEST(RandomInputs, OfAShapeLargerThanTheMachineAreRefused) {
  const auto source = InputSource::random(
      {TensorInfo{"images", DType::kFloat32, {1, 3, 1 << 30, 1 << 30}, true}}, Contract(), 1, 1);
  ASSERT_FALSE(source.ok());
  EXPECT_THAT(source.status().message(),
              HasSubstr("input 'images' has the shape [1,3,1073741824,1073741824]: its values "
                        "alone take 1.288e+10 GiB, and this machine has"));
}

TEST(Images, ComeByNameAndUpToTheLimit) {
  TemporaryDirectory temporary;
  EXPECT_THAT(InputSource::from_images(temporary.path() / "no", contract_of({1, 3, 8, 8}))
                  .status()
                  .message(),
              HasSubstr("there is no image or folder"));
  EXPECT_THAT(
      InputSource::from_images(temporary.path(), contract_of({1, 3, 8, 8})).status().message(),
      HasSubstr("has no image"));
  for (const char* name : {"c.png", "a.png", "b.png"})
    ASSERT_TRUE(write_png(temporary.path() / name, Image(10, 20, 3)).ok());
  std::ofstream(temporary.path() / "annotations.json") << "{}";
  const auto source = InputSource::from_images(temporary.path(), contract_of({1, 3, 8, 8}), 2);
  ASSERT_TRUE(source.ok()) << source.status().message();
  ASSERT_EQ(source->size(), 2u);
  EXPECT_EQ(source->folder(), temporary.path());
  const auto input = source->load(1);
  ASSERT_TRUE(input.ok()) << input.status().message();
  EXPECT_EQ(input->name, "b.png");
  EXPECT_EQ(input->width, 10);
  EXPECT_EQ(input->height, 20);
  EXPECT_EQ(input->tensors.at("images").shape(), (Shape{1, 3, 8, 8}));
  EXPECT_EQ(find_labels("", temporary.path()), temporary.path() / "annotations.json");
  EXPECT_EQ(find_labels("x.json", temporary.path()), "x.json");
}

TEST(Cut, IsNamedInManyWays) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(*parse_cut("none"), Names());
  EXPECT_EQ(*parse_cut("a/b, c/d"), (Names{"a/b", "c/d"}));
  EXPECT_FALSE(parse_cut(",").ok());
  EXPECT_THAT(parse_cut("auto,a/b").status().message(), HasSubstr("'auto' stands alone"));
  TemporaryDirectory temporary;
  const auto from = [&](const std::string& text) {
    std::ofstream(temporary.path() / "cut") << text;
    return parse_cut((temporary.path() / "cut").string());
  };
  EXPECT_EQ(*from("a\n b \n\n"), (Names{"a", "b"}));
  EXPECT_EQ(*from("[\"a\", \"b\"]"), (Names{"a", "b"}));
  EXPECT_EQ(*from("{\"cut\": [\"a\"], \"classes\": []}"), (Names{"a"}));
  EXPECT_EQ(*from("{\"boundaries\": [{\"name\": \"feature_0\", \"source\": \"a\"}]}"),
            (Names{"a"}));
  EXPECT_THAT(from("{\"x\": 1}").status().message(), HasSubstr("'cut' or 'boundaries'"));
  EXPECT_THAT(from("").status().message(), HasSubstr("names no tensor"));
}

TEST(Evidence, GivesTheSameFloatsBack) {
  TemporaryDirectory temporary;
  Evidence evidence(1);
  evidence[0] = {"a.png", 160, 120, sha256_hex("x"), {}, {}};
  // Floats whose decimal form is long, small, large or negative.
  evidence[0].reference = {{3, 0.1F, {1.0F / 3, -1e-30F, 16777216.0F, 159.99998F}}};
  evidence[0].candidate = {{-1, 0.95110726F, {0, 1, 2, 3}}, {2, 0.5F, {0, 0, 1, 1}}};
  const fs::path path = temporary.path() / "detections.json";
  ASSERT_TRUE(write_detections(path, evidence).ok());
  const auto read = read_detections(path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ((*read)[0].reference, evidence[0].reference);
  EXPECT_EQ((*read)[0].candidate, evidence[0].candidate);
  EXPECT_EQ((*read)[0].sha256, evidence[0].sha256);
  EXPECT_EQ((*read)[0].height, 120);
}

}  // namespace
}  // namespace tenonnx
