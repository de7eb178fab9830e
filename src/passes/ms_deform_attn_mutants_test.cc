// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The operator that replace_ms_deform_attn wrote, with a fault planted into its inputs or
// attributes: the proof must catch every one, and pass what the pass wrote. What is captured is
// harmless (every location in the middle, every weight the same).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/status.h"
#include "passes/ms_deform_attn_graph_for_test.h"
#include "passes/proof.h"

namespace tenonnx {
namespace {

constexpr const char* kPass = "replace_ms_deform_attn";

class Fused {
 public:
  Fused(Model model, const AttentionForm& form) : model_(std::move(model)), form_(form) {
    for (auto& node : *model_.mutable_proto().mutable_graph()->mutable_node())
      if (node.op_type() == "MSDeformAttn") node_ = node;
  }

  Model take() {
    onnx::GraphProto& graph = *model_.mutable_proto().mutable_graph();
    std::vector<onnx::NodeProto> nodes;
    for (const auto& node : graph.node()) {
      const bool fused = node.op_type() == "MSDeformAttn";
      if (fused) nodes.insert(nodes.end(), before_.begin(), before_.end());
      nodes.push_back(fused ? node_ : node);
    }
    graph.clear_node();
    for (onnx::NodeProto& node : nodes) *graph.add_node() = std::move(node);
    return std::move(model_);
  }

  const AttentionForm& form() const { return form_; }
  onnx::NodeProto& node() { return node_; }
  std::vector<std::int64_t> sizes() const { return attribute_ints(node_, "spatial_shapes"); }

  // The operator's input goes through op(input, constant) first.
  void through(int input, const char* op_type, const Tensor& constant, int axis = -1) {
    const std::string name = fmt::format("planted_{}", before_.size());
    *model_.mutable_proto().mutable_graph()->add_initializer() =
        to_tensor_proto(constant, name + "_constant");
    append(input, op_type, {node_.input(input), name + "_constant"});
    if (axis >= 0) set_attribute(before_.back(), "axis", std::int64_t{axis});
  }

  // Through a transpose of the shape that it is seen with, and back into the shape it has.
  void read_as(int input, const Shape& seen, const std::vector<std::int64_t>& perm) {
    through(input, "Reshape", int64_vector(seen));
    append(input, "Transpose", {node_.input(input)});
    set_attribute(before_.back(), "perm", perm);
    const AttentionForm& f = form_;
    const std::int64_t points = f.points();
    through(input, "Reshape",
            int64_vector(input == 0   ? Shape{f.batch, f.pixels(), f.heads * f.channels}
                         : input == 1 ? Shape{f.batch, f.queries, f.heads, points, 2}
                                      : Shape{f.batch, f.queries, f.heads, points}));
  }

  // scale * location + offset; both of (level, axis), x first.
  template <typename Scale, typename Offset>
  void move_locations(Scale scale, Offset offset) {
    std::vector<float> scales, offsets;
    for (std::size_t l = 0; l < form_.levels.size(); ++l) {
      const auto& level = form_.levels[l];
      for (std::int64_t p = 0; p < level.points; ++p)
        for (const double size :
             {static_cast<double>(level.width), static_cast<double>(level.height)}) {
          scales.push_back(static_cast<float>(scale(size)));
          offsets.push_back(static_cast<float>(offset(size)));
        }
    }
    const Shape flat = {form_.batch, form_.queries, form_.heads, form_.points(), 2};
    through(1, "Reshape", int64_vector(flat));
    through(1, "Mul", Tensor::from<float>(DType::kFloat32, {form_.points(), 2}, scales));
    through(1, "Add", Tensor::from<float>(DType::kFloat32, {form_.points(), 2}, offsets));
  }

 private:
  void append(int input, const char* op_type, const std::vector<std::string>& inputs) {
    const std::string name = fmt::format("planted_{}", before_.size());
    before_.push_back(make_node(op_type, inputs, {name}));
    before_.back().set_name(name);
    node_.set_input(input, name);
  }

  Model model_;
  const AttentionForm form_;
  onnx::NodeProto node_;
  std::vector<onnx::NodeProto> before_;
};

Tensor ints(const std::vector<std::int64_t>& values) {
  return Tensor::from<std::int64_t>(DType::kInt64, {static_cast<std::int64_t>(values.size())},
                                    values);
}

double one(double) { return 1; }

struct Fault {
  const char* name;
  bool moves_taps;  // some tap is of another pixel or weight, not only a value elsewhere
  void (*plant)(Fused& fused);
};

const Fault kFaults[] = {
    {"SwappedAxes", true,
     [](Fused& f) {
       const AttentionForm& form = f.form();
       f.through(1, "Reshape",
                 int64_vector({form.batch, form.queries, form.heads, form.points(), 2}));
       f.through(1, "Gather", ints({1, 0}), 4);
     }},
    {"HalfPixelShift", true,
     [](Fused& f) { f.move_locations(one, [](double size) { return 0.5 / size; }); }},
    // -1..1 taken for 0..1.
    {"GridForLocation", true,
     [](Fused& f) { f.move_locations([](double) { return 2.0; }, [](double) { return -1.0; }); }},
    // Pixel centres from 0 to size - 1, as align_corners has them.
    {"AlignCorners", true,
     [](Fused& f) {
       f.move_locations([](double size) { return (size - 1) / size; },
                        [](double size) { return 0.5 / size; });
     }},
    {"Clamp", true,
     [](Fused& f) {
       f.through(1, "Max", Tensor::from<float>(DType::kFloat32, {}, {0}));
       f.through(1, "Min", Tensor::from<float>(DType::kFloat32, {}, {1}));
     }},
    // The mean over levels for the sum.
    {"WeightsNormalisedAgain", true,
     [](Fused& f) {
       f.through(2, "Mul",
                 Tensor::from<float>(DType::kFloat32, {},
                                     {1.0F / static_cast<float>(f.form().levels.size())}));
     }},
    {"HeightForWidth", true,
     [](Fused& f) {
       std::vector<std::int64_t> sizes = f.sizes();
       for (std::size_t i = 0; i < sizes.size(); i += 2) std::swap(sizes[i], sizes[i + 1]);
       set_attribute(f.node(), "spatial_shapes", sizes);
     }},
    // Of the last level alone.
    {"HeightForWidthOnce", true,
     [](Fused& f) {
       std::vector<std::int64_t> sizes = f.sizes();
       std::swap(sizes[sizes.size() - 2], sizes[sizes.size() - 1]);
       set_attribute(f.node(), "spatial_shapes", sizes);
     }},
    {"LevelsReversed", true,
     [](Fused& f) {
       std::vector<std::int64_t> sizes;
       const std::vector<std::int64_t> old = f.sizes();
       for (std::size_t l = old.size() / 2; l-- > 0;)
         sizes.insert(sizes.end(), {old[2 * l], old[2 * l + 1]});
       set_attribute(f.node(), "spatial_shapes", sizes);
     }},
    // The points of the first level in the second one, the second's in the third, ...
    {"PointsOfTheNextLevel", true,
     [](Fused& f) {
       const AttentionForm& form = f.form();
       std::vector<std::int64_t> order(static_cast<std::size_t>(form.points()));
       std::iota(order.begin(), order.end(), 0);
       std::rotate(order.begin(), order.begin() + form.levels.front().points, order.end());
       f.through(1, "Reshape",
                 int64_vector({form.batch, form.queries, form.heads, form.points(), 2}));
       f.through(1, "Gather", ints(order), 3);
     }},
    {"HeadsForPointsInLocations", true,
     [](Fused& f) {
       const AttentionForm& form = f.form();
       f.read_as(1, {form.batch, form.queries, form.points(), form.heads, 2}, {0, 1, 3, 2, 4});
     }},
    // Taps are read with the captured weights, which are all the same; made values tell.
    {"HeadsForPointsInWeights", false,
     [](Fused& f) {
       const AttentionForm& form = f.form();
       f.read_as(2, {form.batch, form.queries, form.points(), form.heads}, {0, 1, 3, 2});
     }},
    {"HeadsForChannels", false,
     [](Fused& f) {
       const AttentionForm& form = f.form();
       f.read_as(0, {form.batch, form.pixels(), form.channels, form.heads}, {0, 1, 3, 2});
     }},
    {"QueriesForHeads", true,
     [](Fused& f) {
       const AttentionForm& form = f.form();
       f.read_as(1, {form.batch, form.heads, form.queries, form.points(), 2}, {0, 2, 1, 3, 4});
     }},
    {"Nearest", true,
     [](Fused& f) { set_attribute(f.node(), "mode", std::string_view("nearest")); }},
};

// Levels of which no two agree in a size, with as many points each or different numbers.
std::vector<AttentionForm> forms() {
  using Value = AttentionForm::Value;
  std::vector<AttentionForm> all(3);
  all[0].stacked = true;
  all[0].levels = {{4, 7, 3}, {3, 5, 3}, {2, 3, 3}};
  all[1].value = Value::kTransposed;
  all[1].levels_apart = false;
  all[1].levels = {{4, 7, 3}, {3, 5, 6}, {2, 3, 3}};
  all[1].sum = AttentionForm::Sum::kMatMul;
  all[1].batch = 2;
  all[2].value = Value::kImages;
  all[2].levels = {{6, 3, 4}, {3, 2, 4}};
  all[2].grid_given = true;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].queries = 7;
    all[i].heads = 2;
    all[i].channels = 3;
    all[i].seed = static_cast<unsigned>(i) + 1;
  }
  return all;
}

TensorMap harmless(const AttentionGraph& graph, const AttentionForm& form) {
  TensorMap inputs = graph.inputs();
  for (auto& [name, tensor] : inputs) {
    const Shape& shape = tensor.shape();
    const bool locations = shape.back() == 2 && shape.size() >= 5;
    const bool weights = shape == Shape{form.batch, form.queries, form.heads, form.points()};
    if (!locations && !weights) continue;
    Tensor same(DType::kFloat32, shape);
    for (std::int64_t i = 0; i < same.size(); ++i)
      same.mutable_data<float>()[i] = weights || !form.grid_given ? 0.5F : 0.0F;
    tensor = std::move(same);
  }
  return inputs;
}

PassProof prove(const Model& before, const Model& after, const PassOutcome& outcome,
                const TensorMap& inputs) {
  ProofData data;
  data.count = 1;
  data.load = [&](std::size_t) -> Result<TensorMap> { return inputs; };
  const auto executor = make_cpu_executor();
  const auto pass = find_pass(kPass);
  EXPECT_TRUE(pass.ok());
  auto proof = PassProver(*executor, data, {}).prove(**pass, before, after, outcome);
  EXPECT_TRUE(proof.ok()) << proof.status().message();
  return proof.ok() ? std::move(proof).value() : PassProof();
}

TEST(MsDeformAttnMutants, AreCaughtAndTheTwinPasses) {
  for (const AttentionForm& form : forms()) {
    SCOPED_TRACE(fmt::format("form {}", form.seed));
    const AttentionGraph graph(form);
    const Model before = graph.model();
    const TensorMap inputs = harmless(graph, form);
    Model right = before.clone();
    const PassOutcome outcome = run_pass(right, kPass);
    ASSERT_EQ(outcome.applied, 1);
    const PassProof proof = prove(before, right, outcome, inputs);
    EXPECT_EQ(proof.verdict, Verdict::kPass) << to_json(proof).dump(2);
    ASSERT_EQ(proof.sampling.size(), 1U);
    ASSERT_EQ(proof.sampling[0].levels.size(), form.levels.size());
    for (const SampledLevelProof& level : proof.sampling[0].levels) {
      EXPECT_GT(level.taps.taps, 0);
      EXPECT_EQ(level.taps.wrong, 0);
      EXPECT_THAT(level.made.missing(), testing::IsEmpty());
    }
    for (const Fault& fault : kFaults) {
      SCOPED_TRACE(fault.name);
      Fused fused(right.clone(), form);
      fault.plant(fused);
      const PassProof caught = prove(before, fused.take(), outcome, inputs);
      EXPECT_EQ(caught.verdict, Verdict::kFail) << to_json(caught).dump(2);
      ASSERT_FALSE(caught.failures.empty());
      // Not because it does not run: because it computes something else.
      EXPECT_NE(caught.failures[0].check.name, "runs") << to_text(caught.failures[0].check);
      if (!fault.moves_taps) continue;
      ASSERT_EQ(caught.sampling.size(), 1U);
      std::int64_t wrong = 0;
      for (const SampledLevelProof& level : caught.sampling[0].levels) wrong += level.taps.wrong;
      EXPECT_GT(wrong, 0);
      EXPECT_TRUE(caught.sampling[0].breaks.has_value());
    }
  }
}

}  // namespace
}  // namespace tenonnx
