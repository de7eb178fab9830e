// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// replace_infinite_constants: puts large finite numbers for infinities that mask something.
//
// before: y = Softmax(Add(x, mask)), mask of 0 and -Inf      after: mask of 0 and -32752
//         y = Sigmoid(GatherElements(Add(x, anchors), i)), anchors with Inf where none is valid
//         y = Clip(x, 0, Inf)                                after: y = Max(x, 0)
//         y = Clip(x, -Inf, 6)                               after: y = Min(x, 6)
//         y = Where(m, x, c), c Inf only where the constant m takes x
//
// A use of an infinite constant is followed to whatever ends its influence: exp(-V) and
// 1 - sigmoid(V) are exactly 0 in every float type from V = 104 on, so Softmax, Sigmoid, Tanh, Exp
// and Relu end it, and so do ReduceMax, ArgMax and TopK past -Inf, comparisons with constants and
// Clip. Copies, Add, Where, Concat and Cast between floats pass it on. The tensors between get new
// names: their masked elements are other numbers now.
//
// Option: value (32752). float16 ends at 65504, where Inf * 0 and Inf - Inf make NaN on a device.
// Half of it (exact in float16) leaves room on both sides: x + V neither overflows nor comes near
// the others while |x| <= V/2. Conditions: what is added to V lies within V/2, and so does what it
// is compared with; each row of a Softmax, ReduceMax, ArgMax or TopK has enough that is not masked
// (a row masked whole gives NaN before and equal shares after). The graph does not say this: the
// proof on real inputs does. Refuses, with the node: an infinity that reaches an output, a body, or
// any other operator; a Clip to +Inf from below or to -Inf from above, which makes that infinity;
// and one whose other bound is left out. A Clip without a bound is not one with an infinite bound:
// ONNX ends it at the dtype's largest finite number, which makes 3.4e38 of Inf.
// Class bounded: exp(-V/2), which is 0 in float32 at the default.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "base/half.h"
#include "base/status.h"
#include "model/graph.h"
#include "model/tensor_proto.h"
#include "passes/edit.h"
#include "passes/inference.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/rank_forms.h"

namespace tenonnx {
namespace {

constexpr double kDefaultValue = 32752;
// Below it exp(-V/2) is not 0 in float32, whose smallest number is exp(-103.3).
constexpr double kLowestValue = 208;

struct Signs {
  bool positive = false, negative = false;
  bool any() const { return positive || negative; }
};

double element(const Tensor& t, std::int64_t i) {
  switch (t.dtype()) {
    case DType::kFloat32:
      return t.data<float>()[i];
    case DType::kFloat64:
      return t.data<double>()[i];
    case DType::kFloat16:
      return float16_to_float(t.data<std::uint16_t>()[i]);
    case DType::kBFloat16:
      return bfloat16_to_float(t.data<std::uint16_t>()[i]);
    default:
      return 0;
  }
}

double largest(DType dtype) {
  return dtype == DType::kFloat16 ? 65504 : 3e38;  // of the others at least
}

void set_element(Tensor& t, std::int64_t i, double value) {
  if (t.dtype() == DType::kFloat32) t.mutable_data<float>()[i] = static_cast<float>(value);
  if (t.dtype() == DType::kFloat64) t.mutable_data<double>()[i] = value;
  if (t.dtype() == DType::kFloat16)
    t.mutable_data<std::uint16_t>()[i] = float_to_float16(static_cast<float>(value));
  if (t.dtype() == DType::kBFloat16)
    t.mutable_data<std::uint16_t>()[i] = float_to_bfloat16(static_cast<float>(value));
}

Signs infinities(const Tensor& t) {
  Signs signs;
  for (std::int64_t i = 0; i < t.size(); ++i) {
    const double v = element(t, i);
    if (!std::isinf(v)) continue;
    (v > 0 ? signs.positive : signs.negative) = true;
  }
  return signs;
}

bool copies_first_input(std::string_view op) {
  static const std::set<std::string_view> kOps = {
      "Identity", "Reshape", "Unsqueeze", "Squeeze",        "Flatten",  "Transpose", "Slice",
      "Expand",   "Tile",    "Gather",    "GatherElements", "GatherND", "Split"};
  return kOps.contains(op);
}

class Replacer {
 public:
  Replacer(Model& model, double value)
      : model_(model),
        value_(value),
        names_(model.proto()),
        types_(infer(model).graphs.front()),
        index_(model.proto().graph()) {}

  PassOutcome run() {
    const onnx::GraphProto& graph = model_.proto().graph();
    struct Change {
      int node, input;
      std::string constant;  // "" where a Clip becomes `op_type`
      std::string op_type;
    };
    std::vector<Change> changes;
    for (int n = 0; n < graph.node_size(); ++n) {
      const onnx::NodeProto& node = graph.node(n);
      if (const Form form = clip_form(node); !form.why.empty()) {
        outcome_.skipped.push_back({node_label(node), form.why});
      } else if (!form.op_type.empty()) {
        changes.push_back({n, -1, "", form.op_type});
        outcome_.sites.push_back(
            {node_label(node),
             fmt::format("{} does what Clip with an infinite bound does", form.op_type)});
      }
      for (int i = 0; i < node.input_size(); ++i) {
        if (is_op(node, "Clip") && i > 0) break;
        const auto value = constant(node.input(i));
        const Signs signs = value ? infinities(*value) : Signs();
        if (!signs.any()) continue;
        std::string what;
        touched_.clear();
        const std::string why =
            value_ > largest(value->dtype())
                ? fmt::format("{} is beyond {}", value_, to_string(value->dtype()))
                : prove(node, i, *value, signs, what);
        if (!why.empty()) {
          outcome_.skipped.push_back({node_label(node), why});
          continue;
        }
        renamed_.insert(touched_.begin(), touched_.end());
        changes.push_back({n, i, finite(node.input(i), *value), ""});
        outcome_.sites.push_back({node_label(node), what});
      }
      for (const std::string_view name : captured_names(node)) {
        const auto value = constant(std::string(name));
        if (value && infinities(*value).any())
          outcome_.skipped.push_back(
              {node_label(node), fmt::format("its body takes the infinite '{}'", name)});
      }
    }
    outcome_.applied = static_cast<int>(outcome_.sites.size());
    if (changes.empty()) return std::move(outcome_);
    outcome_.bound =
        Limit{std::exp(-value_ / 2), fmt::format("exp(-V/2), V = {}, of what is masked", value_)};
    onnx::GraphProto& changed = *model_.mutable_proto().mutable_graph();
    for (const Change& change : changes) {
      onnx::NodeProto& node = *changed.mutable_node(change.node);
      if (change.op_type.empty())
        node.set_input(change.input, change.constant);
      else
        reform_clip(node, change.op_type);
    }
    std::unordered_map<std::string, std::string> to;
    for (const std::string& name : renamed_) to[name] = names_.make(name + "_finite");
    for (onnx::NodeProto& node : *changed.mutable_node())
      for (auto* names : {node.mutable_input(), node.mutable_output()})
        for (std::string& name : *names)
          if (const auto it = to.find(name); it != to.end()) name = it->second;
    for (auto& tensor : new_constants_) *changed.add_initializer() = std::move(tensor);
    remove_dead_nodes(changed);
    remove_unused(model_.mutable_proto());
    return std::move(outcome_);
  }

 private:
  std::optional<Tensor> constant(const std::string& name) const {
    const Value* value = name.empty() ? nullptr : index_.find(name);
    if (value == nullptr || value->is_input) return std::nullopt;
    const bool made =
        value->producer >= 0 && is_op(model_.proto().graph().node(value->producer), "Constant");
    if (value->initializer == nullptr && !made) return std::nullopt;
    if (value->initializer != nullptr &&
        value->initializer->data_type() != onnx::TensorProto::FLOAT &&
        value->initializer->data_type() != onnx::TensorProto::FLOAT16 &&
        value->initializer->data_type() != onnx::TensorProto::BFLOAT16 &&
        value->initializer->data_type() != onnx::TensorProto::DOUBLE &&
        value->initializer->data_type() != onnx::TensorProto::BOOL)
      return std::nullopt;
    auto tensor =
        value->initializer != nullptr ? model_.tensor(*value->initializer) : model_.constant(name);
    return tensor.ok() ? std::optional<Tensor>(std::move(tensor).value()) : std::nullopt;
  }

  // The constant with V in place of infinity.
  std::string finite(const std::string& name, const Tensor& value) {
    const auto [it, added] = finite_.try_emplace(name);
    if (!added) return it->second;
    Tensor copy = value.clone();
    for (std::int64_t i = 0; i < copy.size(); ++i) {
      const double v = element(copy, i);
      if (std::isinf(v)) set_element(copy, i, v > 0 ? value_ : -value_);
    }
    it->second = names_.make(name + "_finite");
    new_constants_.push_back(to_tensor_proto(copy, it->second));
    return it->second;
  }

  // What a Clip with infinite bounds is; neither where it has none.
  struct Form {
    std::string op_type, why;
  };
  Form clip_form(const onnx::NodeProto& node) const {
    if (!is_op(node, "Clip")) return {};
    Signs bounds[2];  // of min, of max
    for (int i = 1; i < std::min(node.input_size(), 3); ++i)
      if (const auto value = constant(node.input(i))) bounds[i - 1] = infinities(*value);
    const auto& [low, high] = bounds;
    if (low.positive || high.negative)
      return {"", "Clip to an infinity of the wrong side: it makes that infinity of everything"};
    if (low.negative && high.positive) return {"Identity", ""};
    const auto has = [&](int i) { return i < node.input_size() && !node.input(i).empty(); };
    if (low.negative ? !has(2) : high.positive && !has(1))
      return {"",
              "Clip with an infinite bound and without the other, which is the largest finite "
              "number then"};
    if (low.negative) return {"Min", ""};
    return {high.positive ? "Max" : "", ""};
  }

  // The bound that stays is input 1 of a Clip that becomes Max, input 2 of one that becomes Min.
  static void reform_clip(onnx::NodeProto& node, const std::string& op_type) {
    if (op_type == "Min") node.set_input(1, node.input(2));
    const int inputs = op_type == "Identity" ? 1 : 2;
    while (node.input_size() > inputs) node.mutable_input()->RemoveLast();
    node.set_op_type(op_type);
  }

  // Why the infinities of input `i` must stay; "" where they may go, and `what` says how.
  std::string prove(const onnx::NodeProto& node, int i, const Tensor& value, const Signs& signs,
                    std::string& what) {
    if (is_op(node, "Where") && i > 0 && hidden_by_mask(node, i, value)) {
      what = fmt::format("a constant mask hides every infinity: {} for it", value_);
      return {};
    }
    ends_.clear();
    if (std::string why = follow(node, i, signs); !why.empty()) return why;
    std::string ends;
    for (const std::string& end : ends_) ends += (ends.empty() ? "" : ", ") + end;
    what = fmt::format("{} for infinity, which ends at {}", value_, ends);
    return {};
  }

  bool hidden_by_mask(const onnx::NodeProto& node, int i, const Tensor& value) const {
    const auto mask = constant(node.input(0));
    const auto out = types_.find(node.output(0));
    if (!mask || mask->dtype() != DType::kBool || out == types_.end() || !out->second.is_static())
      return false;
    const Tensor all = broadcast_to(*mask, out->second.shape);
    const Tensor values = broadcast_to(value, out->second.shape);
    for (std::int64_t k = 0; k < values.size(); ++k) {
      const bool taken = (all.data<std::uint8_t>()[k] != 0) == (i == 1);
      if (taken && std::isinf(element(values, k))) return false;
    }
    return true;
  }

  // Why V cannot stand for an infinity that comes into input `i` of a node.
  std::string follow(const onnx::NodeProto& node, int i, const Signs& signs) {
    if (!normalized_domain(node.domain()).empty())
      return fmt::format("{} is of another domain", node_label(node));
    const std::string& op = node.op_type();
    if (copies_first_input(op) && i == 0) {
      for (const std::string& out : node.output())
        if (std::string why = follow_uses(out, signs); !why.empty()) return why;
      return {};
    }
    if (op == "Add" || op == "Concat" || (op == "Where" && i > 0))
      return follow_uses(node.output(0), signs);
    if (op == "Cast") {
      const std::int64_t to = attribute_or(node, "to", std::int64_t{0});
      if (to == onnx::TensorProto::FLOAT || to == onnx::TensorProto::DOUBLE ||
          to == onnx::TensorProto::FLOAT16 || to == onnx::TensorProto::BFLOAT16)
        return follow_uses(node.output(0), signs);
    }
    const bool negative_only = signs.negative && !signs.positive;
    const bool positive_only = signs.positive && !signs.negative;
    bool ends = op == "Sigmoid" || op == "Tanh";
    ends |= negative_only && (op == "Softmax" || op == "Exp" || op == "Relu" || op == "ArgMax" ||
                              (op == "ReduceMax" && i == 0));
    ends |= positive_only && (op == "ArgMin" || (op == "ReduceMin" && i == 0));
    if (op == "TopK" && i == 0) {
      const bool largest_first = attribute_or(node, "largest", std::int64_t{1}) != 0;
      if (largest_first ? negative_only : positive_only) {
        ends_.insert(node_label(node));
        return node.output(0).empty() ? "" : follow_uses(node.output(0), signs);
      }
    }
    if (op == "Greater" || op == "GreaterOrEqual" || op == "Less" || op == "LessOrEqual")
      ends |= bounded_by(node, 1 - i);
    if (op == "Clip" && i == 0)
      ends |= (!signs.negative || bounded_by(node, 1)) && (!signs.positive || bounded_by(node, 2));
    if (!ends)
      return fmt::format("its infinity comes to {}, which is not known to end it",
                         node_label(node));
    ends_.insert(node_label(node));
    return {};
  }

  // Whether an input is constant and within V/2.
  bool bounded_by(const onnx::NodeProto& node, int i) const {
    if (i >= node.input_size()) return false;
    const auto value = constant(node.input(i));
    if (!value || value->dtype() == DType::kBool) return false;
    for (std::int64_t k = 0; k < value->size(); ++k)
      if (!(std::fabs(element(*value, k)) <= value_ / 2)) return false;
    return true;
  }

  std::string follow_uses(const std::string& name, const Signs& signs) {
    if (!touched_.insert(name).second) return {};
    const Value* value = index_.find(name);
    if (value == nullptr) return {};
    if (value->is_output) return fmt::format("its infinity reaches the output '{}'", name);
    for (const Use& use : value->uses) {
      const onnx::NodeProto& user = model_.proto().graph().node(use.node);
      if (use.input < 0)
        return fmt::format("its infinity comes into the body of {}", node_label(user));
      if (std::string why = follow(user, use.input, signs); !why.empty()) return why;
    }
    return {};
  }

  Model& model_;
  const double value_;
  UniqueNames names_;
  const InferredTypes types_;
  const GraphIndex index_;
  std::set<std::string> touched_;  // tensors that the infinity at hand comes into
  std::set<std::string> renamed_;  // all of them
  std::set<std::string> ends_;
  std::unordered_map<std::string, std::string> finite_;
  std::vector<onnx::TensorProto> new_constants_;
  PassOutcome outcome_;
};

}  // namespace

namespace passes {

Result<PassOutcome> replace_infinite_constants(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("replace_infinite_constants", options, {"value"}));
  double value = kDefaultValue;
  if (const auto given = options.find("value"); given != options.end()) {
    const std::string& text = given->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(value >= kLowestValue) ||
        !(value <= 3e38))
      return InvalidArgument(
          "replace_infinite_constants: value must be a number from {} to 3e38, "
          "got '{}'",
          kLowestValue, text);
  }
  return Replacer(model, value).run();
}

}  // namespace passes
}  // namespace tenonnx
