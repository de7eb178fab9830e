// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/inject.h"

#include <cmath>

#include "flow/compare_for_test.h"

namespace tenonnx {
namespace {

using testing::HasSubstr;

constexpr const char* kModel = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 4] x) => (float[1, 4] y) <float k = {2}> {
  m = Mul(x, k)
  y = Add(m, x)
})";

class Inject : public CompareFixture {
 protected:
  Result<InjectResult> run(const std::string& at, const std::string& error) {
    InjectOptions made;
    made.common = options(save("a.onnx", kModel), {{"x", floats({1, 4}, {1, 2, 3, 4})}});
    made.at = at;
    made.error = error;
    made.doses = {2, 1};
    return inject(made);
  }
  std::string message(const std::string& at, const std::string& error) {
    const auto result = run(at, error);
    return result.ok() ? "no error" : result.status().message();
  }
};

TEST_F(Inject, TheErrorGoesThroughTheRestOfTheGraph) {
  // m = 2x becomes 3x at dose 1, 4x at dose 2; y = 3x becomes 4x, 5x.
  const auto result = run("m", "scale:1.5");
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_EQ(result->doses.size(), 2U);
  EXPECT_EQ(result->doses[0].dose, 1);
  EXPECT_NEAR(result->doses[0].relative_l2, 0.5, 1e-7);
  EXPECT_NEAR(result->doses[0].outputs.at(0).second, 1.0 / 3, 1e-7);
  EXPECT_NEAR(result->doses[1].outputs.at(0).second, 2.0 / 3, 1e-7);
  EXPECT_EQ(result->node, "Mul (makes 'm')");
  EXPECT_FALSE(result->has_task);
}

TEST_F(Inject, Files) {
  const auto added = run("m", save("e.npz", {{"m", floats({1, 4}, {1, 0, 0, 0})}}).string());
  ASSERT_TRUE(added.ok()) << added.status().message();
  EXPECT_NEAR(added->doses[0].outputs.at(0).second, 1 / std::sqrt(9.0 + 36 + 81 + 144), 1e-7);
  const auto replaced =
      run("m", "replace:" + save("f.npz", {{"any", floats({1, 4}, {2, 4, 6, 8})}}).string());
  ASSERT_TRUE(replaced.ok()) << replaced.status().message();
  EXPECT_EQ(replaced->doses[0].outputs.at(0).second, 0);  // what is there already
}

TEST_F(Inject, RoundingAndNoise) {
  const auto rounded = run("m", "round:bf16");
  ASSERT_TRUE(rounded.ok()) << rounded.status().message();
  EXPECT_EQ(rounded->doses[0].relative_l2, 0);  // small integers are stored exactly
  const auto noise = run("m", "gauss:0.1"), again = run("m", "gauss:0.1");
  ASSERT_TRUE(noise.ok() && again.ok());
  EXPECT_GT(noise->doses[0].relative_l2, 0.01);
  EXPECT_NEAR(noise->doses[1].relative_l2, 2 * noise->doses[0].relative_l2, 1e-6);
  EXPECT_EQ(noise->doses[0].relative_l2, again->doses[0].relative_l2);
}

TEST_F(Inject, Errors) {
  EXPECT_THAT(message("m", "noise"), HasSubstr("--error 'noise' is none that is known; possible "
                                               "are gauss:SIGMA"));
  EXPECT_THAT(message("m", "gauss:much"), HasSubstr("'much' is no finite number"));
  EXPECT_THAT(message("m", "gauss:-1"), HasSubstr("a sigma is at least 0"));
  EXPECT_THAT(message("m", "round:int4"), HasSubstr("there is no rounding to 'int4'"));
  EXPECT_THAT(message("q", "scale:2"), HasSubstr("'q'"));
  EXPECT_THAT(message("k", "scale:2"), HasSubstr("'k' is a constant of the model"));
  EXPECT_THAT(message("y", "scale:2"), HasSubstr("'y' is an output of the model"));
  EXPECT_THAT(message("m", save("w.npz", {{"m", floats({4}, {1, 2, 3, 4})}}).string()),
              HasSubstr("is [4], the tensor is [1,4]"));
}

}  // namespace
}  // namespace tenonnx
