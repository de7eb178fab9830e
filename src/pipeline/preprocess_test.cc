// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The values themselves are compared with Pillow and numpy in tests/pillow_reference.
#include "pipeline/preprocess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/geometry.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Contract make_contract(int height = 48, int width = 64) {
  Contract contract;
  contract.image.shape = {1, 3, height, width};
  contract.size = SizeInput{};
  return contract;
}

Preprocessor make(const Contract& contract) {
  auto preprocessor = Preprocessor::create(contract);
  EXPECT_TRUE(preprocessor.ok()) << preprocessor.status().message();
  return std::move(*preprocessor);
}

Image coloured(int width, int height, std::uint8_t r, std::uint8_t g, std::uint8_t b) {
  Image image(width, height, 3);
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    image.pixels[i] = r;
    image.pixels[i + 1] = g;
    image.pixels[i + 2] = b;
  }
  return image;
}

TEST(Preprocess, OneOwnerOfNormalisation) {
  Contract contract = make_contract();
  contract.image.mean = {0.5, 0.5, 0.5};
  contract.image.std = {0.25, 0.25, 0.25};
  const Image image = coloured(10, 10, 255, 0, 51);
  Tensor by_pipeline, by_model;
  ASSERT_TRUE(make(contract).image_tensor(view_of(image), by_pipeline).ok());
  contract.image.normalized_by = NormalizedBy::kModel;
  ASSERT_TRUE(make(contract).image_tensor(view_of(image), by_model).ok());
  const std::int64_t plane = 48 * 64;
  // Exact: 0, 0.5 and 1 are, and (x - 0.5) / 0.25 of them.
  EXPECT_EQ(by_pipeline.data<float>()[0], 2.0F);
  EXPECT_EQ(by_pipeline.data<float>()[plane], -2.0F);
  EXPECT_EQ(by_model.data<float>()[0], 1.0F);
  EXPECT_EQ(by_model.data<float>()[plane], 0.0F);
  EXPECT_EQ(by_model.data<float>()[2 * plane], 51.0F / 255.0F);
}

TEST(Preprocess, WritesIntoTheTensorThatIsThere) {
  const Preprocessor preprocessor = make(make_contract());
  TensorMap inputs;
  ASSERT_TRUE(preprocessor.run(view_of(coloured(10, 10, 1, 2, 3)), inputs).ok());
  const void* image = inputs["images"].raw();
  const void* size = inputs["orig_target_sizes"].raw();
  ASSERT_TRUE(preprocessor.run(view_of(coloured(30, 20, 4, 5, 6)), inputs).ok());
  EXPECT_EQ(inputs["images"].raw(), image);
  EXPECT_EQ(inputs["orig_target_sizes"].raw(), size);
}

std::vector<std::int64_t> sizes_of(const Contract& contract, int width, int height) {
  Tensor tensor;
  const Status status = make(contract).size_tensor(width, height, tensor);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(tensor.dtype(), DType::kInt64);
  EXPECT_EQ(tensor.shape(), (Shape{1, 2}));
  return {tensor.data<std::int64_t>()[0], tensor.data<std::int64_t>()[1]};
}

TEST(Preprocess, SizesInTheContractsOrder) {
  Contract contract = make_contract();
  EXPECT_THAT(sizes_of(contract, 640, 480), ElementsAre(640, 480));
  contract.size->order = SizeOrder::kHeightWidth;
  EXPECT_THAT(sizes_of(contract, 640, 480), ElementsAre(480, 640));
  // Letterbox: the boxes come back in pixels of the canvas, which has the model's size.
  contract.image.fit = ResizeFit::kLetterbox;
  EXPECT_THAT(sizes_of(contract, 640, 480), ElementsAre(48, 64));
}

TEST(Preprocess, SizesInTheContractsDtype) {
  Contract contract = make_contract();
  contract.size->dtype = DType::kInt32;
  Tensor tensor;
  ASSERT_TRUE(make(contract).size_tensor(640, 480, tensor).ok());
  ASSERT_EQ(tensor.dtype(), DType::kInt32);
  EXPECT_EQ(tensor.data<std::int32_t>()[0], 640);
  contract.size->dtype = DType::kFloat32;
  ASSERT_TRUE(make(contract).size_tensor(640, 480, tensor).ok());
  ASSERT_EQ(tensor.dtype(), DType::kFloat32);
  EXPECT_EQ(tensor.data<float>()[1], 480.0F);
}

TEST(Preprocess, ZeroSizesAreRefused) {
  const Preprocessor preprocessor = make(make_contract());
  Tensor tensor;
  for (const auto& [width, height] : {std::pair{0, 480}, {640, 0}, {-1, 480}}) {
    const Status status = preprocessor.size_tensor(width, height, tensor);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("'orig_target_sizes'"), HasSubstr("at least 1")));
  }
  Contract contract = make_contract();
  contract.size.reset();
  EXPECT_EQ(make(contract).size_tensor(1, 1, tensor).code(), StatusCode::kFailedPrecondition);
}

TEST(Preprocess, UnsupportedFormatsAreRefused) {
  Tensor tensor;
  ImageView view = view_of(coloured(4, 4, 0, 0, 0));
  view.format = ImageFormat::kUnknown;
  const Image image = coloured(4, 4, 0, 0, 0);
  view.data = image.pixels.data();
  const Status status = make(make_contract()).image_tensor(view, tensor);
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("not one of rgb8, bgr8"));
}

TEST(Preprocess, ContractsThatCannotBeMade) {
  Contract contract = make_contract();
  contract.image.shape = {1, 48, 64, 3};
  EXPECT_THAT(Preprocessor::create(contract).status().message(), HasSubstr("NCHW"));
  contract = make_contract();
  contract.image.dtype = DType::kUInt8;
  EXPECT_THAT(Preprocessor::create(contract).status().message(), HasSubstr("scale must be 1"));
  contract.image.dtype = DType::kInt64;
  EXPECT_THAT(Preprocessor::create(contract).status().message(),
              HasSubstr("float32, float16 or uint8"));
}

// --- Inputs that somebody else made ----------------------------------------------------------

class CheckInputs : public ::testing::Test {
 protected:
  CheckInputs() {
    inputs_["images"] = Tensor(DType::kFloat32, {1, 3, 48, 64});
    inputs_["orig_target_sizes"] = Tensor::from<std::int64_t>(DType::kInt64, {1, 2}, {640, 480});
  }
  std::string error(bool convert = false) {
    return check_inputs(make_contract(), infos_, inputs_, convert).message();
  }
  const std::vector<TensorInfo> infos_ = {{"images", DType::kFloat32, {1, 3, 48, 64}},
                                          {"orig_target_sizes", DType::kInt64, {1, 2}}};
  TensorMap inputs_;
};

TEST_F(CheckInputs, RightOnesPass) { EXPECT_THAT(error(), IsEmpty()); }

TEST_F(CheckInputs, WrongDtype) {
  inputs_["images"] = Tensor(DType::kUInt8, {1, 3, 48, 64});
  EXPECT_THAT(error(), HasSubstr("input 'images' is uint8, the model takes float32"));
}

TEST_F(CheckInputs, WrongShape) {
  inputs_["images"] = Tensor(DType::kFloat32, {1, 3, 48, 48});
  EXPECT_THAT(error(),
              AllOf(HasSubstr("[1,3,48,48], the model takes [1,3,48,64]"), Not(HasSubstr("NHWC"))));
}

TEST_F(CheckInputs, WrongLayout) {
  inputs_["images"] = Tensor(DType::kFloat32, {1, 48, 64, 3});
  EXPECT_THAT(error(), HasSubstr("it looks like NHWC, but the model takes NCHW: transpose it"));
}

TEST_F(CheckInputs, MissingAndUnknown) {
  inputs_["image"] = inputs_["images"];
  EXPECT_THAT(error(), AllOf(HasSubstr("no input 'image'"),
                             HasSubstr("'images' float32 [1,3,48,64], 'orig_target_sizes'")));
  inputs_.erase("image");
  inputs_.erase("images");
  EXPECT_THAT(error(), HasSubstr("input 'images' is missing"));
}

TEST_F(CheckInputs, ZeroSizes) {
  inputs_["orig_target_sizes"] = Tensor::from<std::int64_t>(DType::kInt64, {1, 2}, {640, 0});
  EXPECT_THAT(error(), HasSubstr("'orig_target_sizes' is [640, 0]"));
}

TEST_F(CheckInputs, Int32SizesAreRefusedOrConvertedOnRequest) {
  inputs_["orig_target_sizes"] = Tensor::from<std::int32_t>(DType::kInt32, {1, 2}, {640, 480});
  EXPECT_THAT(error(), AllOf(HasSubstr("is int32, the model takes int64"),
                             HasSubstr("Ask for the conversion")));
  EXPECT_THAT(error(true), IsEmpty());
  const Tensor& size = inputs_["orig_target_sizes"];
  ASSERT_EQ(size.dtype(), DType::kInt64);
  EXPECT_EQ(size.data<std::int64_t>()[0], 640);
  EXPECT_EQ(size.data<std::int64_t>()[1], 480);
  inputs_["orig_target_sizes"] = Tensor::from<std::int32_t>(DType::kInt32, {1, 2}, {0, 480});
  EXPECT_THAT(error(true), HasSubstr("'orig_target_sizes' is [0, 480]"));
}

// --- Letterbox -------------------------------------------------------------------------------

TEST(Geometry, LetterboxAndBack) {
  Contract contract = make_contract(480, 640);
  contract.image.fit = ResizeFit::kLetterbox;
  const Placement2d p = place(contract.image, 100, 200);
  EXPECT_EQ(p.width, 240);  // 480 / 200 = 2.4
  EXPECT_EQ(p.height, 480);
  EXPECT_EQ(p.left, 200);
  EXPECT_EQ(p.top, 0);
  EXPECT_EQ(to_original({200, 0, 440, 480}, p, 100, 200), (Box{0, 0, 100, 200}));
  EXPECT_EQ(place(contract.image, 1, 10'000).width, 1);  // never 0
}

}  // namespace
}  // namespace tenonnx
