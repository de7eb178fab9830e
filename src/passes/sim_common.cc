// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/sim_common.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "device/arithmetic_hint.h"
#include "model/graph.h"
#include "model/tensor_proto.h"
#include "passes/inference.h"
#include "passes/options.h"
#include "passes/sim_gelu.h"
#include "passes/sim_nodes.h"
#include "passes/sim_round.h"

namespace tenonnx {
namespace {

// What is known of a tensor.
struct State {
  int onnx_type = 0;
  bool stored = false;      // holds values of the storage type only
  bool operand_ok = false;  // no magnitude that overflows as an operand
  bool constant = false;    // a weight
  std::string use_as;       // another name that consumers take; "" for itself
};

struct Scope {
  const InferredTypes* types = nullptr;
  const Scope* outer = nullptr;
  std::unordered_map<std::string, State> states;
  std::unordered_map<std::string, std::string> operands;  // tensor -> its form as an operand

  const State* find(const std::string& name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer)
      if (const auto it = scope->states.find(name); it != scope->states.end()) return &it->second;
    return nullptr;
  }
};

class Simulator {
 public:
  Simulator(Model& model, const Arithmetic& arithmetic)
      : model_(model), a_(arithmetic), names_(model.proto()), inference_(infer(model)) {
    for_each_graph(model_.proto().graph(), [this](const onnx::GraphProto& graph) {
      indices_.emplace(&graph, indices_.size());
    });
    const double operand_limit = largest_kept(a_, a_.matmul_operand);
    const auto exceeds = [&](const Overflow& result) {
      if (result.kind != a_.matmul_operand.kind) return true;
      return std::max(largest_kept(a_, result), result.infinite) > operand_limit;
    };
    operands_may_overflow_ = exceeds(a_.elementwise) || exceeds(a_.matmul_result);
  }

  Result<PassOutcome> run() {
    if (const auto gelu = a_.operators.find("Gelu");
        gelu != a_.operators.end() && !gelu->second.form.empty()) {
      TENONNX_ASSIGN_OR_RETURN(gelus_, find_sim_gelus(model_));
    }
    TENONNX_RETURN_IF_ERROR(import_opset(model_.mutable_proto(), kSimDomain, 1));
    TENONNX_RETURN_IF_ERROR(graph(*model_.mutable_proto().mutable_graph(), nullptr));
    return std::move(outcome_);
  }

 private:
  RoundSpec spec(const Overflow& overflow) const { return stored_values(a_, overflow); }
  bool changes_values(const Overflow& overflow) const {
    return a_.storage != DType::kFloat32 || overflow.kind != Overflow::Kind::kInfinity ||
           !a_.keep_subnormals;
  }

  // Rounds a weight in place, and tells whether it can be an operand as it is.
  Status weight(const std::string& name, onnx::TensorProto& proto, State& state) {
    state.onnx_type = proto.data_type();
    state.constant = true;
    if (!is_simulated_type(proto.data_type())) return {};
    TENONNX_ASSIGN_OR_RETURN(Tensor values, model_.tensor(proto));
    const std::int64_t count = values.size();
    const bool kept = kept_weights_.contains(name);
    if (!kept && a_.round_weights && changes_values(a_.elementwise)) {
      Tensor rounded(values.dtype(), values.shape());
      if (values.dtype() == DType::kFloat32)
        round_values(spec(a_.elementwise), values.data<float>(), rounded.mutable_data<float>(),
                     count);
      else
        round_values(spec(a_.elementwise), values.data<double>(), rounded.mutable_data<double>(),
                     count);
      proto = to_tensor_proto(rounded, std::string(proto.name()));
      values = rounded;
      ++outcome_.applied;
    }
    state.stored = (a_.round_weights && !kept) || !changes_values(a_.elementwise);
    const double limit = largest_kept(a_, a_.matmul_operand);
    state.operand_ok = true;
    for (std::int64_t i = 0; i < count && state.operand_ok; ++i) {
      const double v =
          values.dtype() == DType::kFloat32 ? values.data<float>()[i] : values.data<double>()[i];
      state.operand_ok = std::abs(v) <= limit;
    }
    return {};
  }

  static std::unordered_set<std::string_view> used_names(const onnx::GraphProto& graph) {
    std::unordered_set<std::string_view> used;
    for (const onnx::ValueInfoProto& output : graph.output()) used.insert(output.name());
    for (const onnx::NodeProto& node : graph.node()) {
      used.insert(node.input().begin(), node.input().end());
      for (const std::string_view name : captured_names(node)) used.insert(name);
    }
    return used;
  }

  Status graph(onnx::GraphProto& graph, const Scope* outer) {
    Scope scope;
    scope.types = &inference_.graphs[indices_.at(&graph)];
    scope.outer = outer;
    if (outer == nullptr) kept_weights_ = kept_weights(graph, a_);
    std::vector<onnx::NodeProto> nodes;
    for (onnx::TensorProto& proto : *graph.mutable_initializer())
      TENONNX_RETURN_IF_ERROR(weight(proto.name(), proto, scope.states[proto.name()]));
    for (const onnx::SparseTensorProto& proto : graph.sparse_initializer()) {
      if (is_simulated_type(proto.values().data_type()))
        skip(proto.values().name(), "a sparse weight: it stays unrounded");
      scope.states[proto.values().name()].onnx_type = proto.values().data_type();
    }
    for (const onnx::ValueInfoProto& input : graph.input()) {
      if (scope.states.contains(input.name())) continue;
      State& state = scope.states[input.name()];
      state.onnx_type = input.type().tensor_type().elem_type();
      if (outer == nullptr && is_simulated_type(state.onnx_type)) round_input(input, state, nodes);
    }
    // Of names that are renamed on the way: their first use is what they were.
    std::unordered_set<std::string> used;
    for (const std::string_view name : used_names(graph)) used.emplace(name);

    google::protobuf::RepeatedPtrField<onnx::NodeProto> old;
    old.Swap(graph.mutable_node());
    for (onnx::NodeProto& node : old) TENONNX_RETURN_IF_ERROR(this->node(node, scope, used, nodes));
    for (onnx::NodeProto& node : nodes) *graph.add_node() = std::move(node);
    return {};
  }

  void round_input(const onnx::ValueInfoProto& input, State& state,
                   std::vector<onnx::NodeProto>& nodes) {
    state.stored = !changes_values(a_.elementwise);
    if (!a_.round_inputs || state.stored) return;
    state.stored = true;
    state.use_as = names_.make(input.name() + "/rounded");
    nodes.push_back(round_node(spec(a_.elementwise), state.onnx_type,
                               names_.make(input.name() + "/Round"), input.name(), state.use_as));
    ++outcome_.applied;
  }

  Status node(onnx::NodeProto& node, Scope& scope, const std::unordered_set<std::string>& used,
              std::vector<onnx::NodeProto>& nodes) {
    const bool standard = normalized_domain(node.domain()).empty();
    if (is_inside_of_gelu(node)) return {};
    const auto gelu = gelus_.inputs.find(node.output_size() > 0 ? node.output(0) : "");
    const std::string gelu_input = gelu == gelus_.inputs.end() ? "" : gelu->second;
    const OperatorArithmetic& own =
        gelu_input.empty() ? own_arithmetic(a_, node) : a_.operators.at("Gelu");
    const bool pattern_operands =
        (own.overflow && own.overflow->kind == Overflow::Kind::kPattern) ||
        (standard && is_product(node.op_type()));
    bool operands_changed = false;
    const std::string value = node.input_size() > 0 ? node.input(0) : "";
    bool inputs_stored = true, inputs_ok = true;
    for (int i = 0; i < node.input_size(); ++i) {
      const State* state = scope.find(node.input(i));
      if (node.input(i).empty() || state == nullptr) continue;
      if (is_simulated_type(state->onnx_type)) {
        inputs_stored &= state->stored;
        inputs_ok &= state->operand_ok;
      }
      const std::string original = node.input(i);
      if (!state->use_as.empty()) node.set_input(i, state->use_as);
      if (pattern_operands && i < 2 && is_simulated_type(state->onnx_type) && !state->operand_ok &&
          operands_may_overflow_) {
        node.set_input(i, operand(original, node.input(i), state->onnx_type, scope, nodes));
        operands_changed = true;
      }
    }
    bool has_body = false;
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      has_body |= attribute.has_g() || attribute.graphs_size() > 0;
      if (attribute.has_g()) TENONNX_RETURN_IF_ERROR(graph(*attribute.mutable_g(), &scope));
      for (onnx::GraphProto& body : *attribute.mutable_graphs())
        TENONNX_RETURN_IF_ERROR(graph(body, &scope));
    }
    const bool is_constant =
        standard && (node.op_type() == "Constant" || node.op_type() == "ConstantOfShape");
    State constant;
    if (is_constant) TENONNX_RETURN_IF_ERROR(constant_node(node, constant));

    std::vector<onnx::NodeProto> after;
    bool is_float32 = false;
    for (std::string& name : *node.mutable_output()) {
      if (name.empty()) continue;
      State& state = scope.states[name];
      const auto type = scope.types->find(name);
      state.onnx_type = type == scope.types->end() ? 0 : type->second.onnx_type;
      if (state.onnx_type == 0)
        skip(node_label(node),
             fmt::format("the type of '{}' is not known: it stays unrounded", name));
      if (is_other_float(state.onnx_type)) {
        skip(node_label(node),
             fmt::format("'{}' is {}: it stays as it is", name, onnx_type_name(state.onnx_type)));
      }
      if (!is_simulated_type(state.onnx_type)) continue;
      is_float32 |= state.onnx_type == onnx::TensorProto::FLOAT;
      if (is_constant) {
        state = constant;
        continue;
      }
      // What the bodies write has been rounded there.
      if (has_body) continue;
      const bool product = standard && is_product(node.op_type());
      RoundSpec spec = stored_results(a_, own, product);
      const auto error = a_.relative_error.find(node.op_type());
      const bool moved = only_moves(node) && inputs_stored && !own.overflow;
      bool needed = a_.round_outputs && changes_values(spec.overflow) && !moved;
      if (error != a_.relative_error.end()) {
        if (!a_.round_outputs) spec = RoundSpec{};
        spec.relative_error = error->second;
        spec.seed = tensor_seed(a_.seed, name);
        needed = true;
      }
      state.stored = moved || a_.round_outputs;
      state.operand_ok =
          error == a_.relative_error.end() &&
          ((only_moves(node) && inputs_ok) || (standard && is_within_one(node.op_type())));
      if (!needed || !used.contains(name)) continue;
      const std::string exact = names_.make(name + "/unrounded");
      const std::string label = names_.make(name + "/Round");
      std::optional<onnx::NodeProto> round;
      if (operands_changed && spec.overflow.kind == Overflow::Kind::kPattern &&
          state.onnx_type == onnx::TensorProto::FLOAT)
        round = round_product_node(spec, node, label, exact, name);
      after.push_back(round ? std::move(*round)
                            : round_node(spec, state.onnx_type, label, exact, name));
      name = exact;
      ++outcome_.applied;
    }
    if (own.round_attributes) round_attributes(node, this->spec(a_.elementwise), model_.opset());
    if (!own.form.empty() && is_float32) use_form(node, own, gelu_input, value, scope, nodes);
    nodes.push_back(std::move(node));
    for (onnx::NodeProto& round : after) nodes.push_back(std::move(round));
    return {};
  }

  // Of a GELU that becomes one operator, and no output of the graph.
  bool is_inside_of_gelu(const onnx::NodeProto& node) const {
    if (node.output_size() != 1 || !gelus_.inside.contains(node.output(0))) return false;
    const auto& outputs = model_.proto().graph().output();
    // A node that is an output keeps the others: they are few, and only there while captured.
    return std::none_of(outputs.begin(), outputs.end(), [&](const onnx::ValueInfoProto& output) {
      return gelus_.inside.contains(output.name());
    });
  }

  // Puts the operator in its form into the place of `node`, in float32. `value` is the name that
  // its first input had.
  void use_form(onnx::NodeProto& node, const OperatorArithmetic& own, const std::string& gelu_input,
                const std::string& value, const Scope& scope, std::vector<onnx::NodeProto>& nodes) {
    if (!gelu_input.empty()) {
      const State* state = scope.find(gelu_input);
      if (state == nullptr || state->onnx_type != onnx::TensorProto::FLOAT) return;
      node =
          form_node(node, own, model_.opset(), state->use_as.empty() ? gelu_input : state->use_as);
      return;
    }
    if (own.form == "grid_fractions") return use_grid_fractions(node, value, scope, nodes);
    if (own.form != "by_reciprocal") {
      node = form_node(node, own, model_.opset(), node.input(0));
      return;
    }
    // A compiler divides by a constant beforehand, and rounds to nearest.
    const State* divisor = scope.find(node.input(1));
    OperatorArithmetic reciprocal;
    reciprocal.form =
        divisor != nullptr && divisor->constant ? "reciprocal_nearest" : "reciprocal_down";
    onnx::NodeProto inverse = form_node(node, reciprocal, model_.opset(), node.input(1));
    inverse.set_name(names_.make(node.name() + "/Reciprocal"));
    inverse.set_output(0, names_.make(node.input(1) + "/reciprocal"));
    node.set_op_type("Mul");
    node.set_input(1, inverse.output(0));
    nodes.push_back(std::move(inverse));
  }

  // Values of two dimensions of known size; nothing else is changed.
  void use_grid_fractions(onnx::NodeProto& node, const std::string& value, const Scope& scope,
                          std::vector<onnx::NodeProto>& nodes) {
    const auto found = scope.types->find(value);
    if (found == scope.types->end() || found->second.shape.size() != 4) return;
    const std::int64_t height = found->second.shape[2], width = found->second.shape[3];
    if (height < 2 || width < 2) return;
    auto grid = grid_node(node, height, width, names_.make(node.name() + "/Grid"),
                          names_.make(node.input(1) + "/fractions"));
    if (!grid) return;
    node.set_input(1, grid->output(0));
    nodes.push_back(std::move(*grid));
  }

  std::string operand(const std::string& tensor, const std::string& use_as, int onnx_type,
                      Scope& scope, std::vector<onnx::NodeProto>& nodes) {
    const auto [it, inserted] = scope.operands.try_emplace(tensor);
    if (!inserted) return it->second;
    RoundSpec spec = this->spec(a_.matmul_operand);
    spec.round = false;
    it->second = names_.make(tensor + "/operand");
    nodes.push_back(
        round_node(spec, onnx_type, names_.make(tensor + "/Operand"), use_as, it->second));
    ++outcome_.applied;
    return it->second;
  }

  // The value of a Constant or the fill of a ConstantOfShape, rounded in place.
  Status constant_node(onnx::NodeProto& node, State& state) {
    state.stored = state.operand_ok = true;  // ConstantOfShape fills with 0 by default
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.name() == "value") {
        TENONNX_RETURN_IF_ERROR(weight(node.output(0), *attribute.mutable_t(), state));
      } else if (attribute.name() == "value_float" || attribute.name() == "value_floats") {
        onnx::TensorProto values;
        values.set_data_type(onnx::TensorProto::FLOAT);
        if (attribute.name() == "value_floats") {
          values.add_dims(attribute.floats_size());
          *values.mutable_float_data() = attribute.floats();
        } else {
          values.add_float_data(attribute.f());
        }
        TENONNX_RETURN_IF_ERROR(weight(node.output(0), values, state));
        attribute.Clear();
        attribute.set_name("value");
        attribute.set_type(onnx::AttributeProto::TENSOR);
        *attribute.mutable_t() = std::move(values);
      }
    }
    state.onnx_type = onnx::TensorProto::FLOAT;
    return {};
  }

  void skip(const std::string& node, std::string reason) {
    outcome_.skipped.push_back({node, std::move(reason)});
  }

  Model& model_;
  const Arithmetic& a_;
  UniqueNames names_;
  const Inference inference_;
  SimGelus gelus_;
  std::unordered_set<std::string> kept_weights_;
  std::unordered_map<const onnx::GraphProto*, std::size_t> indices_;
  bool operands_may_overflow_ = false;
  PassOutcome outcome_;
};

}  // namespace

Result<PassOutcome> simulate(Model& model, const Arithmetic& arithmetic) {
  return Simulator(model, arithmetic).run();
}

Result<PassOutcome> simulate_storage(Model& model, const PassOptions& options, DType storage) {
  TENONNX_RETURN_IF_ERROR(
      only_options(fmt::format("sim_{}", to_string(storage)), options, {"device"}));
  Arithmetic arithmetic;
  arithmetic.storage = storage;
  arithmetic.round_inputs = arithmetic.round_weights = arithmetic.round_outputs = true;
  if (const auto name = options.find("device"); name != options.end()) {
    TENONNX_ASSIGN_OR_RETURN(const Device device, find_device(name->second));
    if (!device.arithmetic) return InvalidArgument("{}", no_arithmetic(device));
    if (device.arithmetic->storage != storage) {
      return InvalidArgument("device '{}' ({}) stores {}, this pass simulates {}", device.name,
                             device.file.string(), to_string(device.arithmetic->storage),
                             to_string(storage));
    }
    arithmetic = *device.arithmetic;
  }
  return simulate(model, arithmetic);
}

}  // namespace tenonnx
