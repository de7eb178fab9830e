// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "pipeline/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/half.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();

Contract make_contract() {
  Contract contract;
  contract.image.shape = {1, 3, 100, 200};  // 200 wide
  contract.size = SizeInput{};
  return contract;
}

TensorMap selected(std::vector<std::int64_t> labels, std::vector<float> boxes,
                   std::vector<float> scores) {
  const auto n = static_cast<std::int64_t>(scores.size());
  return {{"labels", Tensor::from(DType::kInt64, {1, n}, labels)},
          {"boxes", Tensor::from(DType::kFloat32, {1, n, 4}, boxes)},
          {"scores", Tensor::from(DType::kFloat32, {1, n}, scores)}};
}

std::string error(const Contract& contract, const TensorMap& outputs) {
  return decode_detections(contract, outputs, 400, 300, 0.25F).status().message();
}

TEST(Decode, SelectedOutputsAreUsedAsTheyAre) {
  // The score 1.5 is no probability, and the third box reaches beyond the image: as they are.
  const auto outputs = selected({3, 1, 0, 2}, {1, 2, 3, 4, 5, 6, 7, 8, -9, 10, 500, 12, 0, 0, 1, 1},
                                {0.3F, 1.5F, 0.3F, 0.25F});
  const auto found = decode_detections(make_contract(), outputs, 400, 300, 0.25F);
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->size(), 3U);  // "above" 0.25 leaves 0.25 out
  EXPECT_EQ((*found)[0], (Detection{1, 1.5F, {5, 6, 7, 8}}));
  EXPECT_EQ((*found)[1], (Detection{3, 0.3F, {1, 2, 3, 4}}));  // equal scores keep their order
  EXPECT_EQ((*found)[2], (Detection{0, 0.3F, {-9, 10, 500, 12}}));
}

TEST(Decode, FilledUpRowsAreLeftOut) {
  const auto found = decode_detections(
      make_contract(), selected({-1, 0}, {0, 0, 0, 0, 1, 1, 2, 2}, {0.9F, 0.5F}), 400, 300, 0.25F);
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ((*found)[0].label, 0);
}

TEST(Decode, WithoutASizeInputBoxesAreInPixelsOfTheModelsInput) {
  Contract contract = make_contract();
  contract.size.reset();
  const auto found =
      decode_detections(contract, selected({0}, {20, 10, 200, 100}, {0.9F}), 400, 300, 0.25F);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ((*found)[0].box, (Box{40, 30, 400, 300}));
}

TEST(Decode, TheLetterboxIsUndone) {
  Contract contract = make_contract();
  contract.image.fit = ResizeFit::kLetterbox;
  // 50 x 50 on 200 x 100: doubled, 50 pixels from the left.
  const auto found =
      decode_detections(contract, selected({0}, {50, 0, 150, 100}, {0.9F}), 50, 50, 0.25F);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ((*found)[0].box, (Box{0, 0, 50, 50}));
}

Contract raw_contract(int top_k = 300) {
  Contract contract = make_contract();
  contract.outputs.kind = OutputKind::kRaw;
  contract.outputs.top_k = top_k;
  return contract;
}

// Two queries, three classes. Logit 0 is the score 0.5; log(3) is 0.75.
TensorMap raw() {
  return {{"logits", Tensor::from<float>(DType::kFloat32, {1, 2, 3},
                                         {0, -9, std::log(3.0F), -9, 2.0F, -kInf})},
          {"pred_boxes", Tensor::from<float>(DType::kFloat32, {1, 2, 4},
                                             {0.5F, 0.5F, 0.5F, 1, 0.25F, 0.25F, 0.5F, 0.25F})}};
}

TEST(Decode, RawOutputsAreDecoded) {
  const auto found = decode_detections(raw_contract(), raw(), 400, 300, 0.25F);
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->size(), 3U);
  EXPECT_EQ((*found)[0].label, 1);
  EXPECT_FLOAT_EQ((*found)[0].score, 1 / (1 + std::exp(-2.0F)));
  EXPECT_EQ((*found)[0].box, (Box{0, 37.5F, 200, 112.5F}));
  EXPECT_EQ((*found)[1].label, 2);
  EXPECT_FLOAT_EQ((*found)[1].score, 0.75F);
  EXPECT_EQ((*found)[1].box, (Box{100, 0, 300, 300}));
  // One query may be two detections, of two classes.
  EXPECT_EQ((*found)[2].label, 0);
  EXPECT_EQ((*found)[2].box, (*found)[1].box);
}

TEST(Decode, TopKBoundsTheRawDetections) {
  const auto found = decode_detections(raw_contract(1), raw(), 400, 300, 0.0F);
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ((*found)[0].label, 1);
  EXPECT_EQ(decode_detections(raw_contract(300), raw(), 400, 300, -1.0F)->size(), 6U);
}

TEST(Decode, Float16OutputsAndInt32Labels) {
  TensorMap outputs = selected({0}, {1, 2, 3, 4}, {0.5F});
  outputs["labels"] = Tensor::from<std::int32_t>(DType::kInt32, {1, 1}, {5});
  outputs["scores"] =
      Tensor::from<std::uint16_t>(DType::kFloat16, {1, 1}, {float_to_float16(0.75F)});
  const auto found = decode_detections(make_contract(), outputs, 400, 300, 0.25F);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ((*found)[0], (Detection{5, 0.75F, {1, 2, 3, 4}}));
}

TEST(Decode, NaNIsAnErrorThatNamesItsRow) {
  EXPECT_THAT(error(make_contract(), selected({0, 1}, {0, 0, 1, 1, 0, 0, 1, 1}, {0.9F, NAN})),
              AllOf(HasSubstr("'scores'"), HasSubstr("NaN in row 1")));
  EXPECT_THAT(error(make_contract(), selected({0, 1}, {0, 0, 1, 1, 0, 0, NAN, 1}, {0.9F, 0.1F})),
              AllOf(HasSubstr("'boxes'"), HasSubstr("row 1")));
  EXPECT_THAT(error(make_contract(), selected({0}, {0, 0, kInf, 1}, {0.9F})),
              HasSubstr("infinite box in row 0"));
}

TEST(Decode, WrongOutputsAreNamed) {
  TensorMap outputs = selected({0}, {0, 0, 1, 1}, {0.9F});
  outputs.erase("boxes");
  EXPECT_THAT(error(make_contract(), outputs), HasSubstr("output 'boxes'"));
  outputs = selected({0}, {0, 0, 1, 1}, {0.9F});
  outputs["labels"] = Tensor(DType::kFloat32, {1, 1});
  EXPECT_THAT(error(make_contract(), outputs), HasSubstr("'labels' is float32; int64 or int32"));
  outputs["labels"] = Tensor(DType::kInt64, {1, 2});
  EXPECT_THAT(error(make_contract(), outputs), HasSubstr("'labels' has shape [1,2]"));
  outputs = selected({0}, {0, 0, 1, 1}, {0.9F});
  outputs["boxes"] = Tensor(DType::kFloat32, {1, 1, 5});
  EXPECT_THAT(error(make_contract(), outputs), HasSubstr("[1,1,4] as of the scores"));
  EXPECT_FALSE(decode_detections(make_contract(), selected({0}, {0, 0, 1, 1}, {1}), 0, 3, 0).ok());
}

}  // namespace
}  // namespace tenonnx
