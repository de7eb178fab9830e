// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Faults of values: precision, scale, range, epsilon, weights.
#include <cmath>

#include "base/status.h"
#include "classes.h"
#include "draws.h"
#include "edit.h"

namespace tenonnx::planted {
namespace {

constexpr const char* kNormalizations[] = {"LayerNormalization", "BatchNormalization",
                                           "InstanceNormalization"};

bool is_normalization(const std::string& op) {
  return std::any_of(std::begin(kNormalizations), std::end(kNormalizations),
                     [&](const char* one) { return op == one; });
}

// The addend under a root, or a normalization's.
bool has_epsilon(const Facts& facts, int n) {
  const onnx::NodeProto& node = facts.node(n);
  if (!facts.is_computed(node.output(0))) return false;
  if (is_normalization(node.op_type())) return true;
  if (node.op_type() != "Add") return false;
  const int input = scalar_input(facts.model, node);
  if (input < 0 || *scalar_of(facts.model, node.input(input)) <= 0 ||
      *scalar_of(facts.model, node.input(input)) > 1e-2F)
    return false;
  const auto& uses = facts.index.uses(node.output(0));
  return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
    return is_one_of(facts.node(use.node).op_type(), {"Sqrt", "Pow", "Reciprocal"});
  });
}

Fault draw_epsilon(const Facts& facts, int n, Random& random) {
  const float value = one_of<float>({1e-3F, 1e-2F, 0.1F, 1.F}, random);
  Fault fault;
  fault.text = fmt::format("epsilon {:g}", value);
  const int input =
      facts.node(n).op_type() == "Add" ? scalar_input(facts.model, facts.node(n)) : -1;
  fault.change = [=](Model& model, int node) {
    Edit edit(model, node);
    if (input < 0)
      Edit::set(edit.node(), "epsilon", value);
    else
      edit.node().set_input(input, edit.scalar(value));
  };
  return fault;
}

Fault draw_narrowed(const Facts&, int, Random& random) {
  const int form = static_cast<int>(random() % 3);
  Fault fault;
  fault.text = form == 0 ? "rounded to bfloat16" : form == 1 ? "cut to whole numbers" : "in 8 bits";
  fault.change = [=](Model& model, int node) {
    Edit edit(model, node);
    const std::string right = edit.take_output();
    if (form < 2) {
      const auto type = form == 0 ? onnx::TensorProto::BFLOAT16 : onnx::TensorProto::INT32;
      edit.finish(edit.cast(edit.cast(right, type), onnx::TensorProto::FLOAT));
      return;
    }
    // From the least to the greatest value in 255 steps.
    const auto extreme = [&](const char* op) {
      onnx::NodeProto& made = edit.add(op, {right});
      Edit::set(made, "keepdims", std::int64_t{0});
      return made.output(0);
    };
    const std::string low = extreme("ReduceMin"), high = extreme("ReduceMax");
    const std::string step = edit.apply("Div", {edit.apply("Sub", {high, low}), edit.scalar(255)});
    const std::string whole =
        edit.apply("Round", {edit.apply("Div", {edit.apply("Sub", {right, low}), step})});
    edit.finish(edit.apply("Add", {edit.apply("Mul", {whole, step}), low}));
  };
  return fault;
}

bool has_scale(const Facts& facts, int n) {
  const onnx::NodeProto& node = facts.node(n);
  if (!gives_floats(facts, n)) return false;
  if (is_one_of(node.op_type(), {"MatMul", "Gemm", "Conv"})) return true;
  return is_one_of(node.op_type(), {"Mul", "Div"}) && scalar_input(facts.model, node) >= 0;
}

Fault draw_scale(const Facts& facts, int n, Random& random) {
  const onnx::NodeProto& node = facts.node(n);
  Fault fault;
  const int scalar = scalar_input(facts.model, node);
  const bool leaves_out = is_one_of(node.op_type(), {"Mul", "Div"}) && scalar >= 0 &&
                          !facts.index.find(node.output(0))->is_output && random() % 2 == 0;
  if (leaves_out) {
    fault.text = "the scale left out";
    fault.removes_tensor = true;
    fault.change = [=](Model& model, int at) {
      Edit edit(model, at);
      const std::string kept = edit.node().input(1 - scalar), gone = edit.node().output(0);
      bool given_out = false;
      for (const auto& output : edit.graph().output()) given_out |= output.name() == gone;
      if (given_out) {  // a part of a graph
        edit.node().set_op_type("Identity");
        edit.node().clear_input();
        edit.node().add_input(kept);
        return;
      }
      for (onnx::NodeProto& one : *edit.graph().mutable_node())
        for (std::string& name : *one.mutable_input())
          if (name == gone) name = kept;
      edit.graph().mutable_node()->DeleteSubrange(at, 1);
    };
    return fault;
  }
  const float factor = one_of<float>({0.5F, 0.70710678F, 0.9F, 1.25F, 1.41421356F, 2.F}, random);
  fault.text = fmt::format("{:g} times", factor);
  fault.change = [=](Model& model, int at) {
    Edit edit(model, at);
    const std::string right = edit.take_output();
    edit.finish(edit.apply("Mul", {right, edit.scalar(factor)}));
  };
  return fault;
}

bool is_softmax(const Facts& facts, int n) {
  return facts.node(n).op_type() == "Softmax" && gives_floats(facts, n);
}

// What the exponential of a type overflows at, without the maximum being subtracted: 11.09 for
// float16; the others of types with a scale.
Fault draw_saturating(const Facts&, int, Random& random) {
  const float bound = one_of<float>({11.09F, 8.F, 5.5F, 4.F, 2.77F, 1.F}, random);
  Fault fault;
  fault.text = fmt::format("its inputs saturate at {:g}", bound);
  fault.change = [=](Model& model, int node) {
    Edit edit(model, node);
    edit.node().set_input(0, edit.apply("Min", {edit.node().input(0), edit.scalar(bound)}));
  };
  return fault;
}

// The square of a normalization that is written out; or one that the device writes out.
bool has_square(const Facts& facts, int n) {
  const onnx::NodeProto& node = facts.node(n);
  if (!facts.is_computed(node.output(0))) return false;
  if (node.op_type() == "LayerNormalization") return node.input_size() == 3;
  const bool square = node.op_type() == "Pow"
                          ? scalar_of(facts.model, node.input(1)).value_or(0) == 2
                          : node.op_type() == "Mul" && node.input(0) == node.input(1);
  if (!square) return false;
  const auto& uses = facts.index.uses(node.output(0));
  return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
    return facts.node(use.node).op_type() == "ReduceMean";
  });
}

Fault draw_absorbed(const Facts& facts, int n, Random& random) {
  const float bound = one_of<float>({16.F, 4.F, 1.F, 0.25F}, random);
  Fault fault;
  fault.text = fmt::format("its square is cut off at {:g}", bound);
  if (facts.node(n).op_type() != "LayerNormalization") {
    fault.change = [=](Model& model, int node) {
      Edit edit(model, node);
      const std::string right = edit.take_output();
      edit.finish(edit.apply("Min", {right, edit.scalar(bound)}));
    };
    return fault;
  }
  fault.change = [=](Model& model, int at) {
    Edit edit(model, at);
    const float epsilon = attribute_or(edit.node(), "epsilon", 1e-5F);
    const std::int64_t axis = attribute_or(edit.node(), "axis", std::int64_t{-1});
    if (axis != -1 && axis < 0) return;
    const std::string x = edit.node().input(0), scale = edit.node().input(1),
                      bias = edit.node().input(2);
    const auto mean = [&](const std::string& of) {
      onnx::NodeProto& made = edit.add("ReduceMean", {of});
      if (edit.model().opset() >= 18)
        made.add_input(edit.integers({-1}));
      else
        Edit::set(made, "axes", std::vector<std::int64_t>{-1});
      return made.output(0);
    };
    const std::string centred = edit.apply("Sub", {x, mean(x)});
    const std::string square = edit.apply("Mul", {centred, centred});
    const std::string clipped = edit.apply("Min", {square, edit.scalar(bound)});
    const std::string root =
        edit.apply("Sqrt", {edit.apply("Add", {mean(clipped), edit.scalar(epsilon)})});
    const std::string scaled = edit.apply("Mul", {edit.apply("Div", {centred, root}), scale});
    edit.node().set_op_type("Add");
    edit.node().clear_attribute();
    edit.node().clear_input();
    edit.node().add_input(scaled);
    edit.node().add_input(bias);
  };
  return fault;
}

// The input that holds the weights; -1 for none.
int weights_of(const Facts& facts, int n) {
  const onnx::NodeProto& node = facts.node(n);
  if (!is_one_of(node.op_type(), {"MatMul", "Gemm", "Conv"}) || !gives_floats(facts, n)) return -1;
  for (int i = 0; i < 2; ++i) {
    const auto constant = facts.model.constant(node.input(i));
    if (constant.ok() && constant->dtype() == DType::kFloat32 && constant->size() >= 64) return i;
  }
  return -1;
}

// Those of an earlier step of the training: every one a little off.
Fault draw_stale(const Facts& facts, int n, Random& random) {
  const int input = weights_of(facts, n);
  const double share = one_of<double>({0.1, 0.3, 1.0}, random);
  const std::uint64_t seed = random();
  Fault fault;
  fault.text = fmt::format("weights {:g} of their root mean square off", share);
  fault.change = [=](Model& model, int at) {
    Edit edit(model, at);
    const auto constant = model.constant(edit.node().input(input));
    if (!constant.ok()) return;
    Tensor stale = constant->clone();
    float* values = stale.mutable_data<float>();
    double squares = 0;
    for (std::int64_t i = 0; i < stale.size(); ++i) squares += double{values[i]} * values[i];
    Random noise(seed);
    std::normal_distribution<double> normal(0, share * std::sqrt(squares / double(stale.size())));
    for (std::int64_t i = 0; i < stale.size(); ++i) values[i] += static_cast<float>(normal(noise));
    edit.node().set_input(input, edit.constant(stale));
  };
  return fault;
}

}  // namespace

void add_value_classes(std::vector<FaultClass>& to) {
  to.push_back({"wrong epsilon", {FaultKind::kEpsilon}, "", has_epsilon, draw_epsilon});
  to.push_back({"dropped or narrowed cast", {FaultKind::kPrecision}, "", computes, draw_narrowed});
  to.push_back({"wrong scale", {FaultKind::kScale}, "", has_scale, draw_scale});
  to.push_back({"saturating Softmax", {FaultKind::kRange}, "", is_softmax, draw_saturating});
  to.push_back(
      {"absorbed overflow of a LayerNorm", {FaultKind::kRange}, "", has_square, draw_absorbed});
  to.push_back({"stale weights",
                {FaultKind::kWeights},
                "",
                [](const Facts& facts, int n) { return weights_of(facts, n) >= 0; },
                draw_stale});
}

}  // namespace tenonnx::planted
