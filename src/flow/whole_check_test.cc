// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/whole_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <cmath>
#include <map>
#include <set>

#include "adapters/sim.h"
#include "base/half.h"
#include "base/npy.h"
#include "base/status.h"
#include "base/temporary_directory.h"
#include "contract/contract.h"
#include "model/extract.h"
#include "model/shapes.h"
#include "model/tensor_proto.h"
#include "passes/fixed_point.h"
#include "passes/storage_noise.h"
#include "passes/test_support.h"
#include "pipeline/dataset.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

const fs::path kExample = fs::path(TENONNX_TEST_SOURCE_DIR) / "examples/models/shapes_deimv2.onnx";

TensorInputs random_inputs(const Model& model, std::size_t count = 1) {
  auto source = InputSource::random(model.inputs(), Contract(), count, 1);
  EXPECT_TRUE(source.ok()) << source.status().message();
  return TensorInputs::from_source(std::move(source).value());
}

Tensor half_of(const Tensor& tensor) {
  std::vector<std::uint16_t> values;
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    values.push_back(float_to_float16(tensor.data<float>()[i]));
  return Tensor::from<std::uint16_t>(DType::kFloat16, tensor.shape(), values);
}

// The nodes of these types compute in float16: Casts around them, and between them none.
Model with_float16_inside(const Model& source, const std::set<std::string>& types) {
  Model model = source.clone();
  const TensorInfos infos = infer_shapes(model);
  onnx::GraphProto& graph = *model.mutable_proto().mutable_graph();
  const auto is_float = [&](const std::string& name) {
    const auto info = infos.find(name);
    return info != infos.end() && info->second.dtype == DType::kFloat32;
  };
  std::map<std::string, std::string> half;
  std::vector<onnx::NodeProto> nodes;
  const auto cast = [&](const std::string& from, const std::string& to, int type) {
    onnx::NodeProto& node = nodes.emplace_back();
    node.set_op_type("Cast");
    node.set_name(to + "_cast");
    node.add_input(from);
    node.add_output(to);
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name("to");
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(type);
  };
  const auto half_input = [&](const std::string& name) {
    if (const auto known = half.find(name); known != half.end()) return known->second;
    const std::string as_half = name + "_half";
    if (const auto constant = model.constant(name); constant.ok()) {
      *graph.add_initializer() = to_tensor_proto(half_of(*constant), as_half);
    } else {
      cast(name, as_half, onnx::TensorProto::FLOAT16);
    }
    return half[name] = as_half;
  };
  for (onnx::NodeProto node : graph.node()) {
    if (!types.contains(node.op_type()) || !is_float(node.output(0))) {
      nodes.push_back(node);
      continue;
    }
    for (std::string& input : *node.mutable_input())
      if (!input.empty() && is_float(input)) input = half_input(input);
    const std::string output = node.output(0);
    half[output] = output + "_half";
    node.set_output(0, half[output]);
    nodes.push_back(node);
    cast(half[output], output, onnx::TensorProto::FLOAT);
  }
  graph.clear_node();
  for (onnx::NodeProto& node : nodes) *graph.add_node() = std::move(node);
  const std::vector<std::string> clean = {"eliminate_dead_nodes"};
  EXPECT_TRUE(run_passes(model, clean, {}).ok());
  return model;
}

Model optimized(const Model& source) {
  Model model = source.clone();
  FixedPointRequest request;
  for (const PassInfo& pass : all_passes())
    if (pass.stage == PassStage::kOptimize) request.passes.push_back(&pass);
  const auto result = run_to_fixed_point(model, request);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return model;
}

WholeCheck check(const Model& before, const Model& after, const TensorInputs& inputs,
                 const Contract* contract = nullptr) {
  const auto result =
      check_whole(before, after, PassClass::kAlgebraic, inputs, contract, LoadOptions());
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : WholeCheck();
}

std::string text_of(const WholeCheck& whole) {
  std::string text;
  for (const Check& check : whole.checks) text += to_text(check) + "\n";
  return text;
}

// Scales the float16 constants of this rank, as a pass that folds a wrong factor would.
void scale_constants(Model& model, std::size_t rank, float factor) {
  int scaled = 0;
  for (onnx::TensorProto& proto : *model.mutable_proto().mutable_graph()->mutable_initializer()) {
    const auto tensor = model.tensor(proto);
    if (!tensor.ok() || tensor->dtype() != DType::kFloat16 || tensor->shape().size() != rank)
      continue;
    std::vector<float> values;
    for (std::int64_t i = 0; i < tensor->size(); ++i)
      values.push_back(factor * float16_to_float(tensor->data<std::uint16_t>()[i]));
    const std::string name = proto.name();
    proto = to_tensor_proto(half_of(Tensor::from<float>(DType::kFloat32, tensor->shape(), values)),
                            name);
    ++scaled;
  }
  EXPECT_GT(scaled, 0);
}

// h * 0.3 * 0.7 in float16 and h * 0.21 differ by a rounding or two of float16, which are
// thousands of float32. Disturbing x by a unit of float32 changes next to nothing behind the Cast.
Model scaled_twice() {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4,64] x) => (float[4,64] y) <float[1] k3 = {0.3}, float[1] k7 = {0.7}> {
      c3 = Cast <to = 10> (k3)  c7 = Cast <to = 10> (k7)
      h = Cast <to = 10> (x)  a = Mul (h, c3)  b = Mul (a, c7)  y = Cast <to = 1> (b)
    })");
  run_pass(model, "fold_constants");
  return model;
}

TEST(WholeCheck, KnowsOfTheFloat16Inside) {
  const Model before = scaled_twice();
  Model after = before.clone();
  ASSERT_EQ(run_pass(after, "merge_constant_chains").applied, 1);
  const WholeCheck whole = check(before, after, random_inputs(before));
  EXPECT_EQ(whole.verdict, Verdict::kPass) << text_of(whole);
  // Of the part that changed alone storing the result in float16 is enough.
  EXPECT_THAT(text_of(whole), AnyOf(HasSubstr("float16 inside"), HasSubstr("storing the result")));
}

// What a pass folded is computed once more, and all else runs once.
TEST(WholeCheck, OneRunTellsOfBothGraphs) {
  const Model before = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,8] x) => (float[2,8] y) <float k = {2}, float l = {3}> {
      a = Mul (x, k)  c = Mul (k, l)  b = Mul (a, c)  y = Relu (b) })");
  const auto judged = [&](const std::string& c, PassClass exactness) {
    const Model after = model_from_text(
        R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,8] x) => (float[2,8] y) <float k = {2}, float c = {)" +
        c + "}> { a = Mul (x, k)  b = Mul (a, c)  y = Relu (b) }");
    const auto whole = check_whole(before, after, exactness, random_inputs(before), nullptr, {});
    EXPECT_TRUE(whole.ok()) << whole.status().message();
    return whole.ok() ? *whole : WholeCheck();
  };
  const WholeCheck whole = judged("6", PassClass::kBitwise);
  EXPECT_EQ(whole.verdict, Verdict::kPass) << text_of(whole);
  EXPECT_THAT(text_of(whole), HasSubstr("3 nodes of both graphs ran once"));
  for (const PassClass exactness : {PassClass::kBitwise, PassClass::kAlgebraic}) {
    const WholeCheck wrong = judged("6.001", exactness);
    EXPECT_EQ(wrong.verdict, Verdict::kFail) << text_of(wrong);
    EXPECT_THAT(text_of(wrong), Not(HasSubstr("ran once")));
  }
}

// A unit in the last place here and there needs no run of a disturbed graph to be allowed.
TEST(WholeCheck, StoringTheResultExplainsALastBit) {
  const Model before = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4,64] x) => (float[4,64] y) <float k = {0.1}> { y = Mul (x, k) })");
  const Model after = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4,64] x) => (float[4,64] y) <float l = {10}> { y = Div (x, l) })");
  const WholeCheck whole = check(before, after, random_inputs(before));
  EXPECT_EQ(whole.verdict, Verdict::kPass) << text_of(whole);
  EXPECT_THAT(text_of(whole), HasSubstr("8 x the noise floor"));
  EXPECT_THAT(text_of(whole), HasSubstr("of storing the result"));
}

TEST(WholeCheck, AWrongConstantInTheFloat16Fails) {
  const Model before = scaled_twice();
  Model after = before.clone();
  ASSERT_EQ(run_pass(after, "merge_constant_chains").applied, 1);
  // 8 roundings of 2^-11 are 0.4 %; this is 3 %.
  scale_constants(after, 1, 1.03F);
  const WholeCheck whole = check(before, after, random_inputs(before));
  EXPECT_EQ(whole.verdict, Verdict::kFail) << text_of(whole);
}

// float32 alone is judged as before: nothing is rounded in float16, so no floor of it is measured.
TEST(WholeCheck, Float32DoesNotGainByIt) {
  Model before = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4,64] x) => (float[4,64] y) <float[1] k3 = {0.3}> { y = Mul (x, k3) })");
  Model same = before.clone();
  EXPECT_EQ(*add_storage_noise(same, 1), 0);
  EXPECT_EQ(op_types(same), op_types(before));
  const Model after = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4,64] x) => (float[4,64] y) <float[1] k3 = {0.30003}> { y = Mul (x, k3) })");
  const WholeCheck whole = check(before, after, random_inputs(before));
  EXPECT_EQ(whole.verdict, Verdict::kFail) << text_of(whole);
}

// h moves by 0.01 in every element, alternately up and down; Tanh makes less of it where it is
// flat.
Model with_error(float error) {
  return model_from_text(fmt::format(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4,2] x) => (float[4,2] y)
    <float[2] e = {{{}, {}}}> {{ a = Identity (x) h = Add (a, e) y = Tanh (h) }})",
                                     error, -error));
}

WholeCheck check_bounded(const Model& before, const Model& after, double bound) {
  auto whole = check_whole(before, after, PassClass::kBounded, random_inputs(before), nullptr, {},
                           {}, {{"h", bound}});
  EXPECT_TRUE(whole.ok()) << whole.status().message();
  return whole.ok() ? *whole : WholeCheck();
}

TEST(WholeCheck, ABoundedPassMayDoWhatItsBoundDoes) {
  const Model before = with_error(0), after = with_error(0.01F);
  // Without a bound the error is far beyond the noise floor.
  EXPECT_EQ(check_bounded(before, after, 0).verdict, Verdict::kFail);
  const WholeCheck within = check_bounded(before, after, 0.0101);
  EXPECT_EQ(within.verdict, Verdict::kPass) << text_of(within);
  EXPECT_THAT(text_of(within), HasSubstr("errors as large as the bounds"));
  const WholeCheck beyond = check_bounded(before, after, 0.005);
  EXPECT_EQ(beyond.verdict, Verdict::kFail) << text_of(beyond);
}

// The bound is of the class bounded alone.
TEST(WholeCheck, ABoundIsNoExcuseForOtherClasses) {
  const Model before = with_error(0), after = with_error(0.01F);
  const auto whole = check_whole(before, after, PassClass::kAlgebraic, random_inputs(before),
                                 nullptr, {}, {}, {{"h", 0.02}});
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_EQ(whole->verdict, Verdict::kFail) << text_of(*whole);
}

TEST(StorageNoise, IsAboutOneUnitOfFloat16) {
  Model model = scaled_twice();
  const TensorMap inputs = random_inputs(model).load(0)->tensors;
  const TensorMap was = run_on_cpu(model, inputs);
  EXPECT_EQ(*add_storage_noise(model, 1), 3);  // h, a, b
  const auto graph = make_proof_executor()->load(model, LoadOptions());
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const auto is = (*graph)->run(inputs);
  ASSERT_TRUE(is.ok()) << is.status().message();
  double largest = 0;
  const Tensor &a = was.at("y"), &b = is->at("y");
  for (std::int64_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(double{b.data<float>()[i]} / a.data<float>()[i] - 1));
  // Three tensors, each by a normal error of 2^-11 (of 256 values the largest is 3 deviations) and
  // by half a unit more, and two constants by a unit of 2^-10 at most.
  EXPECT_GT(largest, 0x1p-11);
  EXPECT_LT(largest, 3 * (3 * 0x1p-11 + 0x1p-11) + 2 * 0x1p-10);
}

const std::set<std::string> kHalf = {"Conv",    "Mul",  "Add",     "MatMul", "Sigmoid", "Concat",
                                     "Reshape", "Relu", "MaxPool", "Sub",    "Div",     "Gemm"};

Model folded_example() {
  auto model = Model::load(kExample);
  EXPECT_TRUE(model.ok()) << model.status().message();
  run_pass(*model, "fold_constants");
  return std::move(*model);
}

Contract example_contract() {
  auto contract = read_contract(*find_contract(kExample));
  EXPECT_TRUE(contract.ok());
  return std::move(contract).value();
}

TEST(WholeCheck, TheFeaturesOfTheExampleInFloat16) {
  const auto part = extract(folded_example(), {"images"}, example_contract().cut);
  ASSERT_TRUE(part.ok()) << part.status().message();
  const Model encoder = with_float16_inside(*part, kHalf);
  Model after = optimized(encoder);
  ASSERT_LT(after.proto().graph().node_size(), encoder.proto().graph().node_size());
  const TensorInputs inputs = random_inputs(encoder);
  const WholeCheck whole = check(encoder, after, inputs);
  EXPECT_EQ(whole.verdict, Verdict::kPass) << text_of(whole);
  scale_constants(after, 4, 1.05F);  // weights of convolutions
  const WholeCheck wrong = check(encoder, after, inputs);
  EXPECT_EQ(wrong.verdict, Verdict::kFail) << text_of(wrong);
}

TEST(WholeCheck, TheDetectionsOfTheExampleInFloat16) {
  const TemporaryDirectory directory;
  ShapesOptions shapes;
  shapes.count = 3;
  shapes.seed = 1'000'000;
  shapes.out = directory.path() / "images";
  ASSERT_TRUE(write_shapes_dataset(shapes).ok());
  const Contract contract = example_contract();
  auto images = InputSource::from_images(shapes.out, contract);
  ASSERT_TRUE(images.ok()) << images.status().message();
  const TensorInputs inputs = TensorInputs::from_source(std::move(images).value());
  const Model before = with_float16_inside(folded_example(), kHalf);
  Model after = optimized(before);
  const WholeCheck whole = check(before, after, inputs, &contract);
  EXPECT_EQ(whole.verdict, Verdict::kPass) << text_of(whole);
  scale_constants(after, 4, 1.05F);
  const WholeCheck wrong = check(before, after, inputs, &contract);
  EXPECT_EQ(wrong.verdict, Verdict::kFail) << text_of(wrong);
}

// The int8 form of sampling leaves the gates of a cpu re-export (scores cosine 0.9988 for 0.999),
// as errors of its bound's size do. With another scale it leaves those of a part on a device too.
TEST(WholeCheck, TheInt8SamplingOfTheExample) {
  const TemporaryDirectory directory;
  ShapesOptions shapes;
  shapes.count = 3;
  shapes.seed = 1'000'000;
  shapes.out = directory.path() / "images";
  ASSERT_TRUE(write_shapes_dataset(shapes).ok());
  const Contract contract = example_contract();
  auto images = InputSource::from_images(shapes.out, contract);
  ASSERT_TRUE(images.ok()) << images.status().message();
  const TensorInputs inputs = TensorInputs::from_source(std::move(images).value());
  const Model before = folded_example();
  Model after = before.clone();
  const PassOutcome outcome = run_pass(after, "replace_grid_sample_int8_lut", {{"range", "8"}});
  ASSERT_EQ(outcome.recomputed.size(), 12U);
  const auto judge = [&](const Model& model, const std::map<std::string, double>& recomputed) {
    auto whole =
        check_whole(before, model, PassClass::kBounded, inputs, &contract, {}, {}, recomputed);
    EXPECT_TRUE(whole.ok()) << whole.status().message();
    return whole.ok() ? *whole : WholeCheck();
  };
  const WholeCheck whole = judge(after, outcome.recomputed);
  EXPECT_EQ(whole.verdict, Verdict::kPass) << text_of(whole);
  const WholeCheck without = judge(after, {});
  EXPECT_EQ(without.verdict, Verdict::kFail) << text_of(without);
  for (auto& node : *after.mutable_proto().mutable_graph()->mutable_node())
    for (auto& attribute : *node.mutable_attribute())
      if (attribute.name() == "value_scale") attribute.set_f(1.5F * attribute.f());
  const WholeCheck wrong = judge(after, outcome.recomputed);
  EXPECT_EQ(wrong.verdict, Verdict::kFail) << text_of(wrong);
}

// 64 scores one unit apart: every disturbance takes another row, 1,000 away. With that as the floor
// a row that is wrong by a tenth of itself passed.
TEST(WholeCheck, ADisturbanceThatExchangesRowsIsNoFloor) {
  const char* text = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[64] scores, float[64] rows) => (float[1] y) <float k = {FACTOR}> {
      best = ArgMax <axis = 0, keepdims = 1> (scores)
      row = Gather (rows, best)
      y = Mul (row, k)
    })";
  const auto with = [&](const std::string& factor) {
    std::string filled = text;
    return model_from_text(filled.replace(filled.find("FACTOR"), 6, factor));
  };
  Tensor scores(DType::kFloat32, {64}), rows(DType::kFloat32, {64});
  float score = 1;
  for (std::int64_t i = 0; i < 64; ++i) {
    scores.mutable_data<float>()[i] = score;
    rows.mutable_data<float>()[i] = 1000 * static_cast<float>(i + 1);
    if (i % 2 == 1) score = std::nextafter(score, 2.0F);  // each twice
  }
  const TemporaryDirectory directory;
  ASSERT_TRUE(write_npz(directory.path() / "in.npz", {{"scores", scores}, {"rows", rows}}).ok());
  const Model before = with("1");
  const auto inputs = TensorInputs::from_files(directory.path() / "in.npz", before.inputs());
  ASSERT_TRUE(inputs.ok()) << inputs.status().message();
  const WholeCheck wrong = check(before, with("1.1"), *inputs);
  EXPECT_EQ(wrong.verdict, Verdict::kInconclusive) << text_of(wrong);
  EXPECT_THAT(text_of(wrong), AnyOf(HasSubstr("exchange rows"), HasSubstr("behind a selection")));
}

// A grid of pixels 3, 4, 5, .. along both axes, rounded to float32, is a Slice but for that
// rounding.
TEST(WholeCheck, TheRoundingOfAConstantGridIsInTheFloor) {
  onnx::ModelProto proto = proto_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,8,37,45] x) => (float[1,8,16,22] y) { y = GridSample (x, grid) })");
  Tensor grid(DType::kFloat32, {1, 16, 22, 2});
  for (std::int64_t i = 0; i < 16 * 22; ++i) {
    grid.mutable_data<float>()[2 * i] = static_cast<float>((2.0 * double(i % 22 + 3) + 1) / 45 - 1);
    grid.mutable_data<float>()[2 * i + 1] =
        static_cast<float>((2.0 * double(i / 22 + 3) + 1) / 37 - 1);
  }
  *proto.mutable_graph()->add_initializer() = to_tensor_proto(grid, "grid");
  const auto loaded = Model::from_proto(proto);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const Model& before = *loaded;
  const auto sliced = [](const std::string& begin) {
    return model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float[1,8,37,45] x) => (float[1,8,16,22] y)
        <int64[2] begin = {3,)" +
                           begin + R"(}, int64[2] end = {19,)" +
                           std::to_string(std::stoi(begin) + 22) + R"(}, int64[2] axes = {2,3}> {
        y = Slice (x, begin, end, axes)
      })");
  };
  const TensorInputs inputs = random_inputs(before);
  const WholeCheck whole = check(before, sliced("3"), inputs);
  EXPECT_EQ(whole.verdict, Verdict::kPass) << text_of(whole);
  const WholeCheck wrong = check(before, sliced("4"), inputs);
  EXPECT_EQ(wrong.verdict, Verdict::kFail) << text_of(wrong);
}

}  // namespace
}  // namespace tenonnx
