// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/sim.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "adapters/address.h"
#include "base/half.h"
#include "model/tensor_proto.h"
#include "ort/library.h"
#include "ort/session.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr float kInf = std::numeric_limits<float>::infinity();

Device device_with(Arithmetic arithmetic) {
  Device device;
  device.name = "toy";
  device.file = "toy.json";
  device.sha256 = "0";
  device.arithmetic = std::move(arithmetic);
  return device;
}

Arithmetic float16() {
  Arithmetic a;
  a.storage = DType::kFloat16;
  a.round_inputs = a.round_weights = a.round_outputs = true;
  return a;
}

TensorMap run_on(const Executor& executor, const Model& model, const TensorMap& inputs) {
  LoadOptions options;
  options.intra_op_threads = 2;
  const auto loaded = executor.load(model, options);
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  if (!loaded.ok()) return {};
  auto outputs = (*loaded)->run(inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  return outputs.ok() ? std::move(outputs).value() : TensorMap();
}

TensorMap run_on_htp(const Model& model, const TensorMap& inputs) {
  const auto executor = make_executor("sim:htp-v73");
  EXPECT_TRUE(executor.ok()) << executor.status().message();
  return executor.ok() ? run_on(**executor, model, inputs) : TensorMap();
}

Tensor floats(Shape shape, const std::vector<float>& values) {
  return Tensor::from<float>(DType::kFloat32, std::move(shape), values);
}

std::vector<float> values(const TensorMap& map, const std::string& name) {
  const auto found = map.find(name);
  if (found == map.end()) return {};
  const float* p = found->second.data<float>();
  return {p, p + found->second.size()};
}

float half(double x) { return float16_to_float(float_to_float16(static_cast<float>(x))); }

// The figures of HTP's emulator (devices/htp-v73.json): 300 squared is 89984, larger results
// saturate at 131008.
TEST(SimHtp, ElementwiseResults) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[6] x) => (float[6] y) { y = Mul (x, x) })");
  EXPECT_EQ(
      values(run_on_htp(model, {{"x", floats({6}, {300, 400, -255, 1e-3F, kInf, 0})}}), "y"),
      (std::vector<float>{89984, 131008, half(65025), half(half(1e-3) * half(1e-3)), 131008, 0}));
}

TEST(SimHtp, NanOfAnElementwiseResultStays) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1] x) => (float[1] y) { y = Sqrt (x) })");
  EXPECT_TRUE(std::isnan(values(run_on_htp(model, {{"x", floats({1}, {-1})}}), "y")[0]));
}

// 16 weights of 1e-5: an operand beyond 65536 is NaN to the matrix unit, and its bits are the
// result (131008 where 16 is right, at worst); one of 60000 is right.
TEST(SimHtp, OperandsOfMatMul) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,16] x) => (float[1,1] y) <float[16,1] w = {
      0.00001, 0.00001, 0.00001, 0.00001, 0.00001, 0.00001, 0.00001, 0.00001,
      0.00001, 0.00001, 0.00001, 0.00001, 0.00001, 0.00001, 0.00001, 0.00001}> {
      y = MatMul (x, w)
    })");
  const auto result = [&](float x) {
    return values(run_on_htp(model, {{"x", floats({1, 16}, std::vector<float>(16, x))}}), "y")[0];
  };
  // The weights are 168 * 2^-24, and the sum rounds once.
  EXPECT_EQ(result(60000), half(16.0 * 60000 * 168 * 0x1p-24));
  EXPECT_EQ(result(100000), 99968);
  EXPECT_EQ(result(-100000), 99968);
  EXPECT_EQ(result(70000), 102784) << "with the quiet bit";
  EXPECT_EQ(result(-1e6F), 131008);
  EXPECT_EQ(result(65536), 65536) << "infinity";
}

TEST(SimHtp, ResultsOfMatMulSaturateNear65536) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,2] x) => (float[1,2] y) <float[2,2] w = {400, -400, 400, -400}> { y = MatMul (x, w) })");
  EXPECT_EQ(values(run_on_htp(model, {{"x", floats({1, 2}, {50, 60})}}), "y"),
            (std::vector<float>{44000, -44000}));
  EXPECT_EQ(values(run_on_htp(model, {{"x", floats({1, 2}, {500, 600})}}), "y"),
            (std::vector<float>{65536, -65536}));
}

// Infinite products of both signs make NaN inside the sum, whose bits are -98304.
TEST(SimHtp, NanOfAProductIsANumber) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,2] x) => (float[1,1] y) <float[2,1] w = {1, -1}> { y = MatMul (x, w) })");
  EXPECT_EQ(values(run_on_htp(model, {{"x", floats({1, 2}, {65536, 65536})}}), "y")[0], -98304);
}

// Add is IEEE's, Sub is not. Measured: onnxruntime-qnn 2.7.0, soc 43, arch 73.
TEST(SimHtp, AdditionBeyondTheRange) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[6] a, float[6] b) => (float[6] y, float[6] z) { y = Add (a, b) z = Sub (a, b) })");
  const TensorMap out =
      run_on_htp(model, {{"a", floats({6}, {4268, -84288, -57280, 70016, 60000, 1})},
                         {"b", floats({6}, {120640, 4980, -24192, -80000, 100032, 2})}});
  EXPECT_EQ(values(out, "y"), (std::vector<float>{120640, -117056, -65536, -112768, 100032, 3}));
  EXPECT_EQ(values(out, "z")[0], -116352) << "an ordinary number, a multiple of 64";
}

TEST(SimHtp, ReluEndsAt65536) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x) => (float[4] y) { y = Relu (x) })");
  EXPECT_EQ(values(run_on_htp(model, {{"x", floats({4}, {70016, -70016, 65504, 1})}}), "y"),
            (std::vector<float>{65536, 0, 65504, 1}));
}

// alpha is 0.2 in float16, 0.19995: at -2.5 the exact one gives 0.
TEST(SimHtp, AttributesAreRounded) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y) { y = HardSigmoid (x) })");
  const auto y = values(run_on_htp(model, {{"x", floats({2}, {-2.5, -2.4921875})}}), "y");
  EXPECT_FLOAT_EQ(y[0], 0.00012207031F);
  EXPECT_FLOAT_EQ(y[1], 0.0016841888F);
}

// Scale and bias of LayerNormalization are not rounded, the same weights of an Add are.
TEST(SimHtp, WeightsThatStayFloat32) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,2] x) => (float[1,2] y, float[1,2] z)
    <float[2] s = {1000.1, 1000.1}, float[2] b = {-1000, -1000}, float[2] c = {1000.1, 1000.1}> {
      y = LayerNormalization <axis = -1> (x, s, b)
      z = Add (x, c)
    })");
  const TensorMap out = run_on_htp(model, {{"x", floats({1, 2}, {-1, 1})}});
  // 1 / sqrt(1 + 1e-5) times 1000.1, less 1000: 0.095; of 1000, to which float16 rounds, -0.005.
  EXPECT_NEAR(values(out, "y")[1], 0.095, 1e-3);
  EXPECT_EQ(values(out, "z")[1], half(1001));
}

// A GELU written with Erf is one operator; capturing what is inside does not change it.
TEST(SimHtp, GeluIsOneOperator) {
  const char* text = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[3] x) => (float[3] y{}) <float r = {{1.4142135}}, float one = {{1}}, float half = {{0.5}}> {{
      d = Div (x, r) e = Erf (d) a = Add (e, one) m = Mul (x, a) y = Mul (m, half)
    }})";
  const Model model = model_from_text(fmt::format(fmt::runtime(text), ""));
  const Model captured = model_from_text(fmt::format(fmt::runtime(text), ", float[3] e"));
  const TensorMap x = {{"x", floats({3}, {4, -8, 1})}};
  const auto y = values(run_on_htp(model, x), "y");
  EXPECT_EQ(y[0], 4.00390625F) << "1 is no number of the internal format";
  EXPECT_EQ(y[1], -0x1p-23F);
  EXPECT_EQ(values(run_on_htp(captured, x), "y"), y);
  EXPECT_EQ(values(run_on_htp(captured, x), "e")[0], 1);
}

// By a constant: its reciprocal in float16; by a tensor: the device's own reciprocal. 1/100 lies
// 0.38 of a step above the value below it.
TEST(SimHtp, Division) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,1] x, float[2] b) => (float[2,1] y, float[2,2] z) <float c = {1.4142135}> {
      y = Div (x, c)
      z = Div (x, b)
    })");
  const TensorMap out =
      run_on_htp(model, {{"x", floats({2, 1}, {1, 3})}, {"b", floats({2}, {3, 6e4F})}});
  EXPECT_EQ(values(out, "y")[0], half(0.70710678));
  EXPECT_EQ(values(out, "z")[0], half(0.333251953125)) << "1/3 is rounded down";
  EXPECT_EQ(values(out, "z")[3], 0) << "1/60000 is subnormal";
}

// Weights of 1e-5 (between 167 and 168 * 2^-24): kept, the relative error is 1.4e-3 at most;
// flushed, it is 1.
TEST(SimHtp, SubnormalWeightsAreKept) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1] x) => (float[1] y) <float[1] w = {0.00001}> { y = Mul (x, w) })");
  const TensorMap inputs = {{"x", floats({1}, {1000})}};
  const float y = values(run_on_htp(model, inputs), "y")[0];
  EXPECT_EQ(y, half(1000 * 168 * 0x1p-24));
  Arithmetic flushing = float16();
  flushing.keep_subnormals = false;
  const auto executor = make_sim_executor(device_with(flushing));
  ASSERT_TRUE(executor.ok());
  EXPECT_EQ(values(run_on(**executor, model, inputs), "y")[0], 0);
}

// A Conv with K = 4096 equals the exact sum rounded once. The sum in float32 is off by some 1e-6 of
// its terms' magnitude, so that it falls on the other side of a tie now and then: at most 2 of 100,
// and then by one step.
TEST(SimHtp, ConvRoundsOnce) {
  constexpr int kChannels = 4096, kOutputs = 100;
  onnx::ModelProto proto = proto_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,4096,1,1] x) => (float[1,100,1,1] y) <float[1] w = {0}> { y = Conv (x, w) })");
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> x(kChannels), w(kChannels * kOutputs);
  for (float& v : x) v = half(normal(random));
  for (float& v : w) v = half(normal(random) / 64);
  *proto.mutable_graph()->mutable_initializer(0) =
      to_tensor_proto(floats({kOutputs, kChannels, 1, 1}, w), "w");
  auto model = Model::from_proto(std::move(proto));
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto y = values(run_on_htp(*model, {{"x", floats({1, kChannels, 1, 1}, x)}}), "y");
  ASSERT_EQ(y.size(), static_cast<std::size_t>(kOutputs));
  int differing = 0;
  for (int o = 0; o < kOutputs; ++o) {
    double exact = 0;
    for (int c = 0; c < kChannels; ++c) exact += double{x[c]} * w[o * kChannels + c];
    const float expected = half(exact);
    if (y[o] == expected) continue;
    ++differing;
    EXPECT_NEAR(y[o], expected, std::abs(expected) * 0x1p-10);
  }
  EXPECT_LE(differing, 2);
}

// The grid to float16, and then the place's fraction between two pixels. The emulator gives 0 and
// 0.5.
TEST(SimHtp, TheSamplingGridIsRounded) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,1,2,2] x, float[1,1,1,2] grid) => (float[1,1,1,1] y) {
      y = GridSample <align_corners = 1> (x, grid)
    })");
  // From -665.5 to 358.5 as the grid goes from -1 to 1: the result is near 0, where float16 is
  // fine.
  const Tensor x = floats({1, 1, 2, 2}, {-665.5F, 358.5F, -665.5F, 358.5F});
  const auto grid = [](float place) { return floats({1, 1, 1, 2}, {place, 0}); };
  const auto simulated = [&](float place) {
    return values(run_on_htp(model, {{"x", x}, {"grid", grid(place)}}), "y")[0];
  };
  // 0.3001 is 1229 * 2^-12 in float16: 0.125 with the exact fraction, whose unit is 0.5 here; 0.151
  // exactly. The interpolation in float32 is off by its rounding at 665: 2^-14 a step.
  EXPECT_NEAR(simulated(0.3001F), 0, 4 * 0x1p-14);
  EXPECT_NEAR(simulated(0.3003F), 0.5, 4 * 0x1p-14);
  EXPECT_NEAR(values(run_on_cpu(model, {{"x", x}, {"grid", grid(0.3001F)}}), "y")[0], 0.1512,
              4 * 0x1p-14);
}

// Nodes that only move values get no Round: what they write must be stored values all the same.
TEST(SimExecutor, MovedValuesAreStoredValues) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,4,6,6] x, bool[1,4,6,6] c) => (float[A] y0, float[B] y1, float[C] y2, float[D] y3)
    <int64[1] flat = {-1}, int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}, float third = {0.3},
     float low = {-0.7}, float high = {0.7}, int64[4] reps = {1, 2, 1, 1}, int64[1] k = {3},
     int64[1] one = {1}, int64[1] five = {5}, int64[1] axis3 = {3}> {
      r = Relu (x)
      n = Neg (x)
      a = Abs (n)
      m = Max (r, n, third)
      mi = Min (m, a)
      w = Where (c, mi, third)
      p = Pad (w, pads, third)
      mp = MaxPool <kernel_shape = [2, 2]> (p)
      t = Transpose <perm = [0, 1, 3, 2]> (mp)
      cl = Clip (n, low, high)
      cc = Concat <axis = 1> (cl, x)
      d = DepthToSpace <blocksize = 2> (cc)
      g1 = Gather <axis = 1> (d, picks2)
      ti = Tile (g1, reps)
      s = Slice (ti, one, five, axis3)
      v, i = TopK (s, k)
      rm = ReduceMax <axes = [1], keepdims = 0> (t)
      mn = ReduceMin <axes = [2], keepdims = 0> (x)
      e = Expand (mn, shape3)
      y0 = Reshape (rm, flat)
      y1 = Reshape (v, flat)
      y2 = Reshape (e, flat)
      y3 = Reshape (s, flat)
      picks2 = Constant <value = int64[2] {1, 0}> ()
      shape3 = Constant <value = int64[3] {2, 4, 6}> ()
    })");
  Tensor mask(DType::kBool, {1, 4, 6, 6});
  for (std::int64_t i = 0; i < mask.size(); ++i) mask.mutable_data<std::uint8_t>()[i] = i % 3 != 0;
  Tensor x = ramp({1, 4, 6, 6});
  for (std::int64_t i = 0; i < x.size(); ++i) x.mutable_data<float>()[i] *= 1.0001F;
  const auto executor = make_sim_executor(device_with(float16()));
  ASSERT_TRUE(executor.ok());
  const TensorMap out = run_on(**executor, model, {{"x", x}, {"c", mask}});
  const auto simulated = simulated_model(model, float16());
  ASSERT_TRUE(simulated.ok());
  EXPECT_EQ(op_counts(*simulated).at("Round"), 1);  // of x
  for (const char* name : {"y0", "y1", "y2", "y3"}) {
    const auto y = values(out, name);
    EXPECT_FALSE(y.empty()) << name;
    for (const float v : y) ASSERT_EQ(v, half(v)) << name;
  }
}

// Larger than a piece of work of one thread, in place and not.
TEST(SimExecutor, LargeTensors) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[200003] x) => (float[200003] y, float[200003] z) <float[1] third = {0.3}> {
      y = Add (x, third)
      z = Mul (y, y)
    })");
  const Tensor x = ramp({200003});
  const auto executor = make_sim_executor(device_with(float16()));
  ASSERT_TRUE(executor.ok());
  const TensorMap out = run_on(**executor, model, {{"x", x}});
  const auto y = values(out, "y"), z = values(out, "z");
  ASSERT_EQ(y.size(), 200003u);
  for (std::size_t i = 0; i < y.size(); ++i) {
    ASSERT_EQ(y[i], half(half(x.data<float>()[i]) + half(0.3))) << i;
    ASSERT_EQ(z[i], half(y[i] * y[i])) << i;
  }
}

TEST(SimExecutor, DoublesAndBodies) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (double[2] x, float[1] v, bool c) => (double[2] y, float[1] z) <double[1] third = {0.3}> {
      y = Mul (x, third)
      z = If (c) <
        then_branch = t () => (float[1] a) {
          k = Constant <value = float[1] {0.1}> ()
          a = Add (v, k)
        },
        else_branch = e () => (float[1] b) { b = Neg (v) }
      >
    })");
  const auto executor = make_sim_executor(device_with(float16()));
  ASSERT_TRUE(executor.ok());
  const TensorMap out = run_on(**executor, model,
                               {{"x", Tensor::from<double>(DType::kFloat64, {2}, {0.1, 1e6})},
                                {"v", floats({1}, {0.2F})},
                                {"c", Tensor::from<std::uint8_t>(DType::kBool, {}, {1})}});
  ASSERT_TRUE(out.contains("y"));
  EXPECT_EQ(out.at("y").data<double>()[0], half(double{half(0.1)} * half(0.3)));
  EXPECT_TRUE(std::isinf(out.at("y").data<double>()[1]));
  EXPECT_EQ(values(out, "z")[0], half(half(0.2F) + half(0.1F)));
}

TEST(SimExecutor, RelativeErrorsAreTheSameEveryTime) {
  Arithmetic a = float16();
  a.relative_error["Exp"] = 0.01;
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[100000] x) => (float[100000] y) { y = Exp (x) })");
  const TensorMap inputs = {{"x", ramp({100000})}};
  const auto run = [&](const Arithmetic& arithmetic) {
    const auto executor = make_sim_executor(device_with(arithmetic));
    EXPECT_TRUE(executor.ok());
    return run_on(**executor, model, inputs);
  };
  const TensorMap first = run(a);
  expect_identical(first, run(a));
  // A standard deviation of 1 %: none of 100,000 is beyond 5 of them (one in 1.7 million is), and
  // the rounding to 11 bits adds 2^-11.
  const auto exact = values(run_on_cpu(model, inputs), "y"), y = values(first, "y");
  double squares = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double relative = double{y[i]} / exact[i] - 1;
    ASSERT_LT(std::abs(relative), 0.05 + 0x1p-11 + 0x1p-10) << i;
    squares += relative * relative;
  }
  // The standard error of a standard deviation from 100,000 values is 0.22 %; the input's own
  // rounding adds some 3e-4.
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(y.size())), 0.01, 1e-4);
  a.seed = 1;
  EXPECT_NE(values(run(a), "y"), y);
}

// Fusions compute over the rounding, so that the level that the caller asks for does not count.
TEST(SimExecutor, OptimisationIsDisabled) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y) { y = Relu (x) })");
  const auto executor = make_executor("sim:htp-v73");
  ASSERT_TRUE(executor.ok());
  LoadOptions options;
  options.optimization = Optimization::kAll;
  const auto loaded = (*executor)->load(model, options);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_THAT((*loaded)->description(),
              AllOf(HasSubstr("sim:htp-v73"), HasSubstr("optimisation disabled")));
  EXPECT_EQ((*loaded)->inputs()[0].name, "x");
  EXPECT_EQ((*loaded)->outputs()[0].name, "y");
}

TEST(SimExecutor, PlacementAgreesWithTheRecord) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y) { y = Mul (x, x) })");
  const auto executor = make_executor("sim:htp-v73");
  ASSERT_TRUE(executor.ok());
  LoadOptions options;
  options.profile = true;
  const auto loaded = (*executor)->load(model, options);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const TensorMap inputs = {{"x", floats({2}, {1, 2})}};
  ASSERT_TRUE((*loaded)->run(inputs).ok());
  const auto placement = (*loaded)->placement();
  ASSERT_TRUE(placement.ok()) << placement.status().message();
  EXPECT_EQ(placement->disagreement, "");
  std::vector<std::string> types;
  for (const NodePlacement& node : placement->nodes) types.push_back(node.op_type);
  EXPECT_THAT(types, ElementsAre("Round", "Mul", "Round"));
}

TEST(SimExecutor, VersionsNameTheDeviceFile) {
  const auto executor = make_executor("sim:htp-v73");
  const auto device = find_device("htp-v73");
  ASSERT_TRUE(executor.ok() && device.ok());
  EXPECT_THAT((*executor)->versions(),
              Contains(Pair("device file", "htp-v73.json sha256 " + device->sha256)));
}

}  // namespace
}  // namespace tenonnx
