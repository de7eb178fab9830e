// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The passes of stage optimize together: on the example, and on random graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "model/tensor_proto.h"
#include "passes/edit.h"
#include "passes/fixed_point.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

const std::filesystem::path kExample =
    std::filesystem::path(TENONNX_TEST_SOURCE_DIR) / "examples/models/shapes_deimv2.onnx";

// fold_constants and the optimize passes to the fixed point, nothing proved.
int clean_up(Model& model, bool bitwise_only) {
  FixedPointRequest request;
  for (const PassInfo& pass : all_passes()) {
    if (pass.stage != PassStage::kOptimize && pass.name != "fold_constants") continue;
    if (bitwise_only && pass.exactness != PassClass::kBitwise) continue;
    request.passes.push_back(&pass);
  }
  const auto result = run_to_fixed_point(model, request);
  EXPECT_TRUE(result.ok()) << result.status().message();
  int applied = 0;
  if (result.ok())
    for (const PassRun& run : result->passes) applied += run.applied;
  return applied;
}

TensorMap inputs_of(const Model& model, std::mt19937& generator) {
  TensorMap inputs;
  for (const TensorInfo& info : model.inputs()) {
    Tensor t(info.dtype, info.shape);
    std::uniform_real_distribution<float> any(-2, 2);
    for (std::int64_t i = 0; i < t.size(); ++i) {
      if (info.dtype == DType::kFloat32) t.mutable_data<float>()[i] = any(generator);
      if (info.dtype == DType::kInt64) t.mutable_data<std::int64_t>()[i] = 480 + 160 * i;
    }
    inputs[info.name] = std::move(t);
  }
  return inputs;
}

TEST(DefaultSet, OfTheExampleNoMoreIsLeftThanPeersLeave) {
  auto model = Model::load(kExample);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const Model before = model->clone();
  clean_up(*model, false);
  const auto counts = op_counts(*model);
  for (const char* op : {"Shape", "Size", "ConstantOfShape", "Expand", "Identity", "Pow"})
    EXPECT_FALSE(counts.contains(op)) << op;
  // Measured on this file: onnxsim 0.8.1 leaves 949 nodes in 2,869,242 bytes, onnxslim 0.1.98 993
  // in 3,055,361.
  EXPECT_LE(model->proto().graph().node_size(), 949);
  const auto bytes = model->serialize();
  ASSERT_TRUE(bytes.ok());
  EXPECT_LE(bytes->size(), 2869242U);

  std::mt19937 generator(7);
  const TensorMap inputs = inputs_of(before, generator);
  const TensorMap a = run_on_cpu(before, inputs), b = run_on_cpu(*model, inputs);
  EXPECT_EQ(std::memcmp(a.at("labels").raw(), b.at("labels").raw(), a.at("labels").bytes()), 0);
  // Boxes of up to 700 pixels: one ulp there is 2^-14 = 6e-5, and 14 layers add a few of them.
  for (std::int64_t i = 0; i < a.at("boxes").size(); ++i)
    ASSERT_NEAR(a.at("boxes").data<float>()[i], b.at("boxes").data<float>()[i], 2e-3);
  for (std::int64_t i = 0; i < a.at("scores").size(); ++i)
    ASSERT_NEAR(a.at("scores").data<float>()[i], b.at("scores").data<float>()[i], 1e-5);
}

TEST(DefaultSet, TheBitwisePassesKeepTheExampleToTheBit) {
  auto model = Model::load(kExample);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const Model before = model->clone();
  EXPECT_GT(clean_up(*model, true), 0);
  std::mt19937 generator(11);
  const TensorMap inputs = inputs_of(before, generator);
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(*model, inputs));
}

// Graphs of up to 22 small operators, made so that every clean-up pass finds work: transposes and
// their inverses, reshapes, neutral constants, slices, joins.
class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed) {
    proto_.set_ir_version(8);
    auto& opset = *proto_.add_opset_import();
    opset.set_version(17);
    proto_.mutable_graph()->set_name("random");
    Shape base(static_cast<std::size_t>(pick(2, 4)));
    for (std::int64_t& dim : base) dim = pick(1, 4);
    for (const char* name : {"x0", "x1"}) {
      *proto_.mutable_graph()->add_input() = to_value_info({name, DType::kFloat32, base});
      tensors_.emplace_back(name, base);
    }
    for (std::int64_t steps = pick(6, 22); steps > 0; --steps) add_step();
    for (std::size_t i = 2; i < tensors_.size(); ++i)
      if (!used_[tensors_[i].first] || pick(0, 9) == 0)
        *proto_.mutable_graph()->add_output() =
            to_value_info({tensors_[i].first, DType::kFloat32, tensors_[i].second});
  }
  const onnx::ModelProto& proto() const { return proto_; }

 private:
  using Named = std::pair<std::string, Shape>;
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }

  std::string constant(const Tensor& value) {
    std::string name = "c" + std::to_string(count_++);
    *proto_.mutable_graph()->add_initializer() = to_tensor_proto(value, name);
    return name;
  }
  std::string integers(const std::vector<std::int64_t>& values) {
    return constant(Tensor::from<std::int64_t>(DType::kInt64,
                                               {static_cast<std::int64_t>(values.size())}, values));
  }

  onnx::NodeProto& node(const char* op_type, const std::vector<std::string>& inputs, Shape shape) {
    for (const std::string& input : inputs) used_[input] = true;
    std::string name = "t" + std::to_string(count_++);
    onnx::NodeProto& added = *proto_.mutable_graph()->add_node();
    added = make_node(op_type, inputs, {name});
    added.set_name("node_" + name);
    tensors_.emplace_back(std::move(name), std::move(shape));
    return added;
  }

  void add_step() {
    const auto last = static_cast<std::int64_t>(tensors_.size()) - 1;
    const Named x =
        tensors_[static_cast<std::size_t>(pick(std::max<std::int64_t>(0, last - 4), last))];
    const Shape& s = x.second;
    const auto rank = static_cast<std::int64_t>(s.size());
    const auto axis = static_cast<std::size_t>(pick(0, rank - 1));
    const std::int64_t kind = pick(0, 19);
    if (kind < 6) {
      transpose(x);
    } else if (kind < 8) {
      const char* ops[] = {"Relu", "Neg", "Abs", "Identity", "Sigmoid"};
      node(ops[pick(0, 4)], {x.first}, s);
    } else if (kind < 11) {
      const float values[] = {0, 1, 2, -3, 0.5F};
      Shape shape(pick(0, 1) == 0 ? 0 : s.size(), 1);
      if (!shape.empty()) shape[axis] = s[axis];
      Tensor value(DType::kFloat32, shape);
      for (std::int64_t i = 0; i < value.size(); ++i)
        value.mutable_data<float>()[i] = values[pick(0, 4)];
      const char* ops[] = {"Add", "Mul", "Sub"};
      node(ops[pick(0, 2)], {x.first, constant(value)}, s);
    } else if (kind < 14) {
      const char* ops[] = {"Add", "Mul", "Max"};
      node(ops[pick(0, 2)], {x.first, alike(s)}, s);
    } else if (kind == 14) {
      Shape joined = s;
      joined[axis] *= 2;
      if (element_count(joined) <= 256)
        set_attribute(node("Concat", {x.first, alike(s)}, joined), "axis",
                      static_cast<std::int64_t>(axis));
    } else if (kind == 15) {
      const std::int64_t half = s.front();
      node("Reshape", {x.first, integers({-1, half})}, {element_count(s) / half, half});
    } else if (kind == 16 && rank < 5) {
      Shape more = s;
      more.insert(more.begin() + static_cast<std::ptrdiff_t>(axis), 1);
      node("Unsqueeze", {x.first, integers({static_cast<std::int64_t>(axis)})}, more);
    } else if (kind == 17 && s[axis] == 1 && rank > 1) {
      Shape less = s;
      less.erase(less.begin() + static_cast<std::ptrdiff_t>(axis));
      node("Squeeze", {x.first, integers({static_cast<std::int64_t>(axis) - rank})}, less);
    } else if (kind == 18) {
      Shape one = s;
      one[axis] = 1;
      node("ReduceSum", {x.first, integers({static_cast<std::int64_t>(axis)})}, one);
    } else if (kind == 19 && s[axis] > 1) {
      const std::int64_t at = pick(1, s[axis] - 1);
      for (const auto& [begin, end] : {std::pair{std::int64_t{0}, at}, std::pair{at, s[axis]}}) {
        Shape part = s;
        part[axis] = end - begin;
        node("Slice",
             {x.first, integers({begin}), integers({end}),
              integers({static_cast<std::int64_t>(axis)})},
             part);
      }
    }
  }

  // Half of the time the inverse of the last permutation of this rank.
  void transpose(const Named& x) {
    std::vector<std::int64_t>& last = permutations_[x.second.size()];
    std::vector<std::int64_t> perm(x.second.size());
    for (std::size_t k = 0; k < perm.size(); ++k) perm[k] = static_cast<std::int64_t>(k);
    std::shuffle(perm.begin(), perm.end(), random_);
    if (!last.empty() && pick(0, 1) == 0)
      for (std::size_t k = 0; k < perm.size(); ++k)
        perm[static_cast<std::size_t>(last[k])] = static_cast<std::int64_t>(k);
    last = perm;
    Shape shape;
    for (const std::int64_t k : perm) shape.push_back(x.second[static_cast<std::size_t>(k)]);
    set_attribute(node("Transpose", {x.first}, shape), "perm", perm);
  }

  // A tensor of this shape.
  std::string alike(const Shape& shape) {
    std::vector<std::string> names;
    for (const auto& [name, other] : tensors_)
      if (other == shape) names.push_back(name);
    return names[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(names.size()) - 1))];
  }

  std::mt19937 random_;
  onnx::ModelProto proto_;
  std::vector<Named> tensors_;
  std::map<std::string, bool> used_;
  std::map<std::size_t, std::vector<std::int64_t>> permutations_;
  int count_ = 0;
};

TEST(DefaultSet, RandomGraphsKeepTheirValues) {
  int changed = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const RandomGraph graph(seed);
    if (graph.proto().graph().output_size() == 0) continue;
    auto model = Model::from_proto(graph.proto());
    ASSERT_TRUE(model.ok()) << model.status().message();
    const Model before = model->clone();
    changed += clean_up(*model, seed % 2 == 0) > 0 ? 1 : 0;
    std::mt19937 generator(seed);
    const TensorMap inputs = inputs_of(before, generator);
    const TensorMap a = run_on_cpu(before, inputs), b = run_on_cpu(*model, inputs);
    if (seed % 2 == 0) {
      expect_identical(a, b);
      continue;
    }
    for (const auto& [name, old] : a) {
      ASSERT_EQ(old.shape(), b.at(name).shape());
      float largest = 1;
      for (std::int64_t i = 0; i < old.size(); ++i)
        largest = std::max(largest, std::fabs(old.data<float>()[i]));
      // At most 22 operators, each within an ulp or so of its largest value; sums may cancel:
      // 2^-18.
      for (std::int64_t i = 0; i < old.size(); ++i)
        ASSERT_NEAR(old.data<float>()[i], b.at(name).data<float>()[i], 0x1p-18F * largest) << name;
    }
  }
  EXPECT_GT(changed, 250);
}

}  // namespace
}  // namespace tenonnx
