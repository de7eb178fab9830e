// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/tensor_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/npy.h"
#include "base/temporary_directory.h"
#include "flow/finite_inputs.h"

namespace tenonnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FiniteInputs : public testing::Test {
 protected:
  // [2,3] with NaN at [0,2] and -Inf at [1,0].
  static Tensor broken() {
    return Tensor::from<float>(DType::kFloat32, {2, 3}, {1, 2, NAN, -INFINITY, 5, 6});
  }
  static Tensor sound() { return Tensor::from<float>(DType::kFloat32, {2, 3}, {1, 2, 3, 4, 5, 6}); }
  std::filesystem::path save(const std::string& name, const TensorMap& tensors) {
    const auto path = temporary_.path() / name;
    EXPECT_TRUE(write_npz(path, tensors).ok());
    return path;
  }
  const TemporaryDirectory temporary_;
  const std::vector<TensorInfo> infos_ = {{"x", DType::kFloat32, {2, 3}}};
};

TEST_F(FiniteInputs, AreAskedForInEveryFile) {
  save("a.npz", {{"x", sound()}});
  EXPECT_TRUE(TensorInputs::from_files(temporary_.path(), infos_).ok());
  save("b.npz", {{"x", broken()}});
  const auto inputs = TensorInputs::from_files(temporary_.path(), infos_);
  ASSERT_FALSE(inputs.ok());
  EXPECT_EQ(inputs.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(inputs.status().message(),
              HasSubstr("b.npz: input 'x' float32 [2,3] holds 1 NaN and 1 infinite value among 6 "
                        "elements, the first at [0,2]"));
  EXPECT_THAT(inputs.status().message(), HasSubstr("mend the file"));
}

TEST_F(FiniteInputs, OfAFolderOfNpyFiles) {
  ASSERT_TRUE(write_npy(temporary_.path() / "x.npy", broken()).ok());
  const auto inputs = TensorInputs::from_files(temporary_.path(), infos_);
  ASSERT_FALSE(inputs.ok());
  EXPECT_THAT(inputs.status().message(), HasSubstr("x.npy: input 'x' float32 [2,3] holds 1 NaN"));
}

// An array that the model does not take is left alone, whatever it holds.
TEST_F(FiniteInputs, AreThoseOfTheModel) {
  const auto path = save("a.npz", {{"x", sound()}, {"y", broken()}});
  EXPECT_TRUE(TensorInputs::from_files(path, infos_).ok());
}

TEST_F(FiniteInputs, AreNotedWhereAVerdictTakesThemIntoAccount) {
  const auto path = save("a.npz", {{"x", broken()}});
  const auto inputs = TensorInputs::from_files(path, infos_, NonFinite::kNote);
  ASSERT_TRUE(inputs.ok()) << inputs.status().message();
  EXPECT_THAT(inputs->notes(),
              ElementsAre(HasSubstr("a.npz: input 'x' float32 [2,3] holds 1 NaN")));
  EXPECT_TRUE(inputs->load(0).ok());
}

TEST_F(FiniteInputs, OfEveryFloatingType) {
  const Tensor half = Tensor::from<std::uint16_t>(DType::kFloat16, {3}, {0x3C00, 0x7C00, 0x7E00});
  EXPECT_EQ(not_finite("h", half),
            "input 'h' float16 [3] holds 1 NaN and 1 infinite value among 3 elements, the first at "
            "[1]");
  const Tensor whole = Tensor::from<std::int64_t>(DType::kInt64, {1}, {0x7FF0000000000000});
  EXPECT_EQ(not_finite("i", whole), "");
  EXPECT_EQ(not_finite("x", sound()), "");
}

}  // namespace
}  // namespace tenonnx
