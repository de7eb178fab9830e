// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Each mistake made on purpose, by other means than the search's own, on the example detector.
#include "flow/contract_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "adapters/address.h"
#include "base/npy.h"
#include "base/temporary_directory.h"
#include "contract/contract.h"
#include "eval/shapes.h"
#include "pipeline/preprocess.h"
#include "pipeline/resize.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const fs::path kModel =
    fs::path(TENONNX_TEST_SOURCE_DIR) / "examples" / "models" / "shapes_deimv2.onnx";

// Shapes, each pixel repeated `x` times across and `y` times down: edges that the two kinds of
// resizing treat differently, and a size that is not square where x and y differ.
Image enlarged(std::uint64_t seed, int x, int y) {
  const auto shapes = make_shapes_image(kShapesHeldOutSeed + seed);
  Image out(kShapesSize * x, kShapesSize * y, 3);
  for (int row = 0; row < out.height; ++row)
    for (int column = 0; column < out.width; ++column)
      for (int c = 0; c < 3; ++c)
        out.row(row)[column * 3 + c] = shapes.rgb[(static_cast<std::size_t>(row / y) * kShapesSize +
                                                   static_cast<std::size_t>(column / x)) *
                                                      3 +
                                                  static_cast<std::size_t>(c)];
  return out;
}

class ContractErrors : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto model = Model::load(kModel);
    ASSERT_TRUE(model.ok()) << model.status().message();
    auto contract = read_contract(*find_contract(kModel));
    ASSERT_TRUE(contract.ok()) << contract.status().message();
    contract_ = std::make_unique<Contract>(std::move(*contract));
    cpu_ = load("cpu", *model);
    htp_ = load("sim:htp-v73", *model);
    ASSERT_TRUE(cpu_ && htp_);
  }
  static void TearDownTestSuite() {
    cpu_.reset();
    htp_.reset();
    contract_.reset();
  }
  static std::unique_ptr<LoadedGraph> load(const std::string& address, const Model& model) {
    LoadOptions options;
    options.intra_op_threads = 1;
    const auto executor = make_executor(address);
    EXPECT_TRUE(executor.ok());
    auto graph = (*executor)->load(model, options);
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return graph.ok() ? std::move(*graph) : nullptr;
  }

  static TensorMap inputs_of(const Image& image, const Contract& contract) {
    const auto preprocessor = Preprocessor::create(contract);
    EXPECT_TRUE(preprocessor.ok()) << preprocessor.status().message();
    TensorMap inputs;
    const Status status = preprocessor->run(view_of(image), inputs);
    EXPECT_TRUE(status.ok()) << status.message();
    return inputs;
  }
  static TensorMap right_inputs(const Image& image) { return inputs_of(image, *contract_); }
  static TensorMap run(LoadedGraph& graph, const TensorMap& inputs) {
    auto outputs = graph.run(inputs);
    EXPECT_TRUE(outputs.ok()) << outputs.status().message();
    return outputs.ok() ? std::move(*outputs) : TensorMap();
  }
  // The kinds that were named.
  static std::vector<std::string> explain(const Image& image, const TensorMap& outputs) {
    auto result = explain_contract_errors(*contract_, *cpu_, view_of(image), outputs);
    EXPECT_TRUE(result.ok()) << result.status().message();
    std::vector<std::string> kinds;
    if (!result.ok()) return kinds;
    last_ = std::move(*result);
    for (const ContractFinding& finding : last_.findings) kinds.push_back(finding.mistake);
    return kinds;
  }
  static std::string sentence() {
    return last_.findings.empty() ? "" : last_.findings.front().sentence;
  }
  template <typename Change>
  static TensorMap pixels_changed(const Image& image, Change change) {
    TensorMap inputs = right_inputs(image);
    Tensor& tensor = inputs.at(contract_->image.name);
    for (std::int64_t i = 0; i < tensor.size(); ++i)
      tensor.mutable_data<float>()[i] = change(tensor.data<float>()[i]);
    return inputs;
  }
  static TensorMap size_changed(const Image& image, std::int64_t first, std::int64_t second) {
    TensorMap inputs = right_inputs(image);
    inputs[contract_->size->name] =
        Tensor::from<std::int64_t>(DType::kInt64, {1, 2}, {first, second});
    return inputs;
  }
  static Image bgr(Image image) {
    for (std::size_t i = 0; i < image.pixels.size(); i += 3)
      std::swap(image.pixels[i], image.pixels[i + 2]);
    return image;
  }

  static std::unique_ptr<Contract> contract_;
  static std::unique_ptr<LoadedGraph> cpu_, htp_;
  static ContractExplanation last_;
};
std::unique_ptr<Contract> ContractErrors::contract_;
std::unique_ptr<LoadedGraph> ContractErrors::cpu_, ContractErrors::htp_;
ContractExplanation ContractErrors::last_;

TEST_F(ContractErrors, ARightCandidateHasNone) {
  for (const std::uint64_t seed : {0, 1, 2}) {
    const Image image = enlarged(seed, 3, 2);
    EXPECT_THAT(explain(image, run(*cpu_, right_inputs(image))), IsEmpty());
    EXPECT_EQ(last_.as_contract.distance, 0);
    EXPECT_EQ(last_.runs, 1);
  }
}

// Noise is no mistake: another device, right inputs.
TEST_F(ContractErrors, ANoisyCandidateHasNone) {
  for (const std::uint64_t seed : {0, 1, 2, 3, 4, 5}) {
    const Image image = enlarged(seed, 3, 2);
    EXPECT_THAT(explain(image, run(*htp_, right_inputs(image))), IsEmpty()) << sentence();
    EXPECT_GT(last_.as_contract.distance, 0);
  }
}

// Neither is a device that is simply wrong.
TEST_F(ContractErrors, ABrokenCandidateHasNone) {
  const Image image = enlarged(0, 3, 2);
  const TensorMap outputs = run(*cpu_, right_inputs(enlarged(7, 3, 2)));
  EXPECT_THAT(explain(image, outputs), IsEmpty()) << sentence();
}

TEST_F(ContractErrors, SwappedColoursOfARecording) {
  const Image image = enlarged(0, 3, 2);
  const TensorMap wrong = run(*cpu_, right_inputs(bgr(image)));
  // As it is met: a recording stands on the other side.
  TemporaryDirectory directory;
  ASSERT_TRUE(write_npz(directory.path() / "image.npz", wrong).ok());
  const auto model = Model::load(kModel);
  const auto board = load("files:" + directory.path().string(), *model);
  ASSERT_TRUE(board);
  const TensorMap recorded = run(*board, right_inputs(image));
  EXPECT_THAT(explain(image, recorded), ElementsAre("color_order"));
  EXPECT_THAT(
      sentence(),
      AllOf(HasSubstr("the candidate's outputs match the reference's when its image is BGR"),
            HasSubstr("scores cosine 1.0000 and 0.00 % apart, instead of"),
            HasSubstr("the candidate swaps the colour channels")));
  // The example looks at shapes, hardly at colours: half a percent of the scores.
  EXPECT_GT(last_.findings[0].as_contract.score_distance, 0.005);
  EXPECT_EQ(last_.findings[0].as_mistaken.distance, 0);
}

// On a device, with its noise on top.
TEST_F(ContractErrors, SwappedColoursOnANoisyDevice) {
  const Image image = enlarged(1, 3, 2);
  EXPECT_THAT(explain(image, run(*htp_, right_inputs(bgr(image)))), ElementsAre("color_order"));
}

TEST_F(ContractErrors, NotDividedBy255) {
  const Image image = enlarged(2, 3, 2);
  const TensorMap inputs = pixels_changed(image, [](float x) { return x * 255; });
  EXPECT_THAT(explain(image, run(*cpu_, inputs)), ElementsAre("normalization"));
  EXPECT_THAT(sentence(), HasSubstr("does not divide the pixels by 255"));
}

TEST_F(ContractErrors, DividedTwice) {
  const Image image = enlarged(2, 3, 2);
  const TensorMap inputs = pixels_changed(image, [](float x) { return x / 255; });
  EXPECT_THAT(explain(image, run(*cpu_, inputs)), ElementsAre("normalization"));
  EXPECT_THAT(sentence(), HasSubstr("divides the pixels by 255 twice"));
}

TEST_F(ContractErrors, NormalisedAlthoughTheModelMustNot) {
  const Image image = enlarged(2, 3, 2);
  TensorMap inputs = pixels_changed(image, [](float x) { return (x - 0.5F) / 0.5F; });
  EXPECT_THAT(explain(image, run(*cpu_, inputs)), ElementsAre("normalization"));
  EXPECT_THAT(sentence(), HasSubstr("mean 0.5 and std 0.5"));
  inputs = right_inputs(image);
  const std::array<float, 3> mean = {0.485F, 0.456F, 0.406F}, std = {0.229F, 0.224F, 0.225F};
  float* x = inputs.at(contract_->image.name).mutable_data<float>();
  for (std::size_t i = 0; i < 3 * kShapesSize * kShapesSize; ++i) {
    const std::size_t c = i / (kShapesSize * kShapesSize);
    x[i] = (x[i] - mean[c]) / std[c];
  }
  EXPECT_THAT(explain(image, run(*cpu_, inputs)), ElementsAre("normalization"));
  EXPECT_THAT(sentence(), HasSubstr("ImageNet's mean and std"));
}

// A contract with mean and std: the same graph cannot tell, but its outputs can.
TEST_F(ContractErrors, NormalisedTwiceOrNotAtAll) {
  const Image image = enlarged(3, 3, 2);
  Contract normalized = *contract_;
  normalized.image.mean = {0.1, 0.1, 0.1};
  normalized.image.std = {0.8, 0.8, 0.8};
  const TensorMap right = inputs_of(image, normalized);
  const auto changed = [&](auto change) {
    TensorMap inputs;
    for (const auto& [name, tensor] : right) inputs[name] = tensor.clone();
    Tensor& tensor = inputs.at(normalized.image.name);
    for (std::int64_t i = 0; i < tensor.size(); ++i)
      tensor.mutable_data<float>()[i] = change(tensor.data<float>()[i]);
    const auto result =
        explain_contract_errors(normalized, *cpu_, view_of(image), run(*cpu_, inputs));
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() && result->findings.size() == 1 ? result->findings[0].sentence : "";
  };
  EXPECT_THAT(changed([](float x) { return (x - 0.1F) / 0.8F; }),
              HasSubstr("normalises with mean and std twice"));
  EXPECT_THAT(changed([](float x) { return x * 0.8F + 0.1F; }),
              HasSubstr("does not normalise with mean and std"));
  EXPECT_THAT(changed([](float x) { return (x * 0.8F + 0.1F) * 255; }),
              HasSubstr("neither scales nor normalises"));
}

TEST_F(ContractErrors, AnotherResizing) {
  const Image image = enlarged(4, 3, 2);
  TensorMap inputs = right_inputs(image);
  const auto resized = resize_opencv_linear(image, kShapesSize, kShapesSize);
  ASSERT_TRUE(resized.ok());
  inputs[contract_->image.name] = right_inputs(*resized).at(contract_->image.name);
  EXPECT_THAT(explain(image, run(*cpu_, inputs)), ElementsAre("resize"));
  EXPECT_THAT(sentence(), HasSubstr("resizes as OpenCV does, not as Pillow"));
  // The same under a device's noise.
  EXPECT_THAT(explain(image, run(*htp_, inputs)), ElementsAre("resize"));
}

TEST_F(ContractErrors, LetterboxForStretch) {
  const Image image = enlarged(4, 3, 2);
  const auto scaled = resize_pillow_bilinear(image, kShapesSize, 107);  // 160 * 320 / 480
  ASSERT_TRUE(scaled.ok());
  Image canvas(kShapesSize, kShapesSize, 3);
  std::fill(canvas.pixels.begin(), canvas.pixels.end(), std::uint8_t{114});
  std::copy(scaled->pixels.begin(), scaled->pixels.end(), canvas.row((kShapesSize - 107) / 2));
  TensorMap inputs = right_inputs(image);
  inputs[contract_->image.name] = right_inputs(canvas).at(contract_->image.name);
  EXPECT_THAT(explain(image, run(*cpu_, inputs)), ElementsAre("resize"));
  EXPECT_THAT(sentence(), HasSubstr("letterbox"));
}

TEST_F(ContractErrors, OtherLayout) {
  const Image image = enlarged(5, 3, 2);
  TensorMap inputs = right_inputs(image);
  const Tensor right = inputs.at(contract_->image.name);
  Tensor wrong(right.dtype(), right.shape());
  const std::int64_t pixels = right.size() / 3;
  for (std::int64_t c = 0; c < 3; ++c)
    for (std::int64_t i = 0; i < pixels; ++i)
      wrong.mutable_data<float>()[i * 3 + c] = right.data<float>()[c * pixels + i];
  inputs[contract_->image.name] = wrong;
  EXPECT_THAT(explain(image, run(*cpu_, inputs)), ElementsAre("layout"));
  EXPECT_THAT(sentence(), HasSubstr("fills an NCHW input with NHWC data"));
}

TEST_F(ContractErrors, Sizes) {
  const Image image = enlarged(6, 3, 2);
  ASSERT_EQ(image.width, 480);
  ASSERT_EQ(image.height, 320);
  EXPECT_THAT(explain(image, run(*cpu_, size_changed(image, 320, 480))), ElementsAre("size"));
  EXPECT_THAT(sentence(), AllOf(HasSubstr("'orig_target_sizes' is [height, width]"),
                                HasSubstr("exchanges width and height")));
  EXPECT_THAT(explain(image, run(*cpu_, size_changed(image, 160, 160))), ElementsAre("size"));
  EXPECT_THAT(sentence(), HasSubstr("size of the resized image"));
  EXPECT_THAT(explain(image, run(*cpu_, size_changed(image, 480, 0))), ElementsAre("size"));
  EXPECT_THAT(sentence(), AllOf(HasSubstr("int64 sizes as int32"), HasSubstr("all y are 0")));
  EXPECT_THAT(explain(image, run(*cpu_, size_changed(image, (std::int64_t{320} << 32) + 480, 0))),
              ElementsAre("size"));
  EXPECT_THAT(sentence(), HasSubstr("reads int32 sizes as int64"));
  // With a device's noise on top.
  EXPECT_THAT(explain(image, run(*htp_, size_changed(image, 320, 480))), ElementsAre("size"));
  EXPECT_THAT(explain(image, run(*htp_, size_changed(image, 480, 0))), ElementsAre("size"));
}

TEST_F(ContractErrors, ASquareImageNeverShowsTheOrderOfTheSize) {
  const Image image = enlarged(6, 2, 2);
  EXPECT_THAT(explain(image, run(*cpu_, right_inputs(image))), IsEmpty());
  EXPECT_THAT(last_.not_tried,
              Contains(AllOf(HasSubstr("order of 'orig_target_sizes'"), HasSubstr("square"))));
}

TEST_F(ContractErrors, WhatAnImageCannotShow) {
  Image grey = enlarged(0, 1, 1);  // the size of the model's input
  for (std::size_t i = 0; i < grey.pixels.size(); i += 3)
    grey.pixels[i + 1] = grey.pixels[i + 2] = grey.pixels[i];
  const TensorMap outputs = run(*cpu_, right_inputs(enlarged(7, 1, 1)));
  explain(grey, outputs);
  EXPECT_THAT(last_.not_tried, AllOf(Contains(HasSubstr("swaps the colour channels")),
                                     Contains(HasSubstr("resizes as OpenCV"))));
}

TEST_F(ContractErrors, TwoAtOnce) {
  const Image image = enlarged(0, 3, 2);
  TensorMap inputs = right_inputs(bgr(image));
  inputs[contract_->size->name] = Tensor::from<std::int64_t>(DType::kInt64, {1, 2}, {320, 480});
  EXPECT_THAT(explain(image, run(*cpu_, inputs)), ElementsAre("color_order", "size"));
  inputs = pixels_changed(bgr(image), [](float x) { return x * 255; });
  EXPECT_THAT(explain(image, run(*cpu_, inputs)),
              UnorderedElementsAre("color_order", "normalization"));
}

TEST_F(ContractErrors, OutputsThatCannotBeRead) {
  const Image image = enlarged(0, 3, 2);
  TensorMap outputs = run(*cpu_, right_inputs(image));
  outputs.erase("boxes");
  EXPECT_THAT(
      explain_contract_errors(*contract_, *cpu_, view_of(image), outputs).status().message(),
      HasSubstr("boxes"));
}

}  // namespace
}  // namespace tenonnx
