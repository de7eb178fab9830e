// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// fix_input_shapes: makes dynamic input dimensions static.
//
// before: images float32 ["batch",3,?,?]    after: images float32 [1,3,640,640]
//
// Options: <input> = <shape>, as images = 1x3x640x640. A symbolic dimension that gets a value gets
// it in every input and recorded shape that names it. Recorded shapes of intermediate tensors and
// dynamic dimensions of outputs are dropped and inferred anew.
//
// Conditions: the input exists and has that rank; a dimension that is static already has that
// value; one symbol has one value. Refuses (InvalidArgument): a Reshape or Expand with a constant
// target that does not fit the new shape, because the export baked the size of its example: each
// such node is listed.
//
// Class bitwise: for inputs of that shape it is the same graph.
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>

#include "base/status.h"
#include "model/graph.h"
#include "model/shapes.h"
#include "model/tensor_proto.h"
#include "passes/inference.h"
#include "passes/passes.h"

namespace tenonnx {
namespace {

Result<Shape> parse_shape(std::string_view input, std::string_view text) {
  Shape shape;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::int64_t dim = 0;
    const auto [next, error] = std::from_chars(at, end, dim);
    if (error != std::errc() || dim < 1) break;
    shape.push_back(dim);
    if (next == end) return shape;
    if (*next != 'x' && *next != ',') break;
    at = next + 1;
  }
  return InvalidArgument("shape of input '{}': expected sizes from 1 as 1x3x640x640, got '{}'",
                         input, text);
}

std::string shape_text(const onnx::TensorShapeProto& shape) {
  std::string text;
  for (const auto& dim : shape.dim()) {
    text += text.empty() ? "" : ",";
    if (dim.has_dim_value())
      text += std::to_string(dim.dim_value());
    else
      text += dim.dim_param().empty() ? "?" : dim.dim_param();
  }
  return "[" + text + "]";
}

// The value of each symbolic dimension, from the given shapes.
using Symbols = std::map<std::string, std::pair<std::int64_t, std::string>>;

Status fix(onnx::ValueInfoProto& input, const Shape& shape, Symbols& symbols) {
  if (!input.type().has_tensor_type())
    return InvalidArgument("input '{}' is no tensor: it has no shape to fix", input.name());
  onnx::TensorShapeProto& declared = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
  const bool ranked = declared.dim_size() > 0;
  if (ranked && declared.dim_size() != static_cast<int>(shape.size())) {
    return InvalidArgument("input '{}' has rank {} {}, got the shape {} of rank {}", input.name(),
                           declared.dim_size(), shape_text(declared), to_string(shape),
                           shape.size());
  }
  for (int i = 0; i < static_cast<int>(shape.size()); ++i) {
    const std::int64_t value = shape[static_cast<std::size_t>(i)];
    auto& dim = *(ranked ? declared.mutable_dim(i) : declared.add_dim());
    if (dim.has_dim_value() && dim.dim_value() != value) {
      return InvalidArgument("dimension {} of input '{}' is fixed at {} {}, got {} in {}", i,
                             input.name(), dim.dim_value(), shape_text(declared), value,
                             to_string(shape));
    }
    if (!dim.dim_param().empty()) {
      const auto [known, inserted] = symbols.try_emplace(dim.dim_param(), value, input.name());
      if (known->second.first != value) {
        return InvalidArgument("dimension '{}' is {} in input '{}' and {} in input '{}'",
                               dim.dim_param(), known->second.first, known->second.second, value,
                               input.name());
      }
    }
    dim.set_dim_value(value);
  }
  return {};
}

// Puts known symbols into a declared shape.
void substitute(onnx::ValueInfoProto& info, const Symbols& symbols) {
  if (!info.type().has_tensor_type() || !info.type().tensor_type().has_shape()) return;
  for (auto& dim : *info.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim()) {
    const auto known = symbols.find(dim.dim_param());
    if (known != symbols.end() && !dim.dim_param().empty()) dim.set_dim_value(known->second.first);
  }
}

// Nodes whose constant target contradicts the static shape of what they take.
std::vector<std::string> baked_shapes(const Model& model, const TensorInfos& types) {
  std::vector<std::string> baked;
  for (const onnx::NodeProto& node : model.proto().graph().node()) {
    if (node.op_type() != "Reshape" || node.input_size() < 2) continue;
    const auto type = types.find(node.input(0));
    const auto target = model.constant(node.input(1));
    if (type == types.end() || !target.ok() || target->dtype() != DType::kInt64) continue;
    const Shape& from = type->second.shape;
    const std::int64_t count = type->second.has_rank ? element_count(from) : -1;
    if (count < 0) continue;
    std::int64_t product = 1;
    bool inferred = false;
    const bool allow_zero = attribute_or(node, "allowzero", std::int64_t{0}) != 0;
    Shape to;
    for (std::int64_t i = 0; i < target->size(); ++i) {
      std::int64_t dim = target->data<std::int64_t>()[i];
      if (dim == 0 && !allow_zero && static_cast<std::size_t>(i) < from.size())
        dim = from[static_cast<std::size_t>(i)];
      to.push_back(dim);
      inferred |= dim == -1;
      if (dim != -1) product *= dim;
    }
    const bool fits = inferred ? product != 0 && count % product == 0 : product == count;
    if (!fits) {
      baked.push_back(
          fmt::format("{} makes {} of {}", node_label(node), to_string(to), to_string(from)));
    }
  }
  return baked;
}

}  // namespace

namespace passes {

Result<PassOutcome> fix_input_shapes(Model& model, const PassOptions& options) {
  PassOutcome outcome;
  onnx::GraphProto& graph = *model.mutable_proto().mutable_graph();
  if (options.empty())
    return InvalidArgument("no input shape given: expected <input>=<shape>, as images=1x3x640x640");
  Symbols symbols;
  for (const auto& [name, text] : options) {
    TENONNX_ASSIGN_OR_RETURN(const Shape shape, parse_shape(name, text));
    onnx::ValueInfoProto* found = nullptr;
    std::string list;
    const auto inputs = model.inputs();
    for (const TensorInfo& input : inputs) {
      list +=
          fmt::format("{}'{}' {}", list.empty() ? "" : ", ", input.name, to_string(input.shape));
      if (input.name != name) continue;
      for (onnx::ValueInfoProto& info : *graph.mutable_input())
        if (info.name() == name) found = &info;
    }
    if (found == nullptr) return InvalidArgument("no input '{}'; the model has {}", name, list);
    const std::string before = shape_text(found->type().tensor_type().shape());
    TENONNX_RETURN_IF_ERROR(fix(*found, shape, symbols));
    if (shape_text(found->type().tensor_type().shape()) != before) ++outcome.applied;
  }
  for (onnx::ValueInfoProto& info : *graph.mutable_input()) substitute(info, symbols);
  for (onnx::ValueInfoProto& info : *graph.mutable_output()) substitute(info, symbols);
  // Recorded shapes may still tell the old size, or bear symbols that an exporter derived from it.
  // What inference cannot find again (behind operators of other domains) keeps its type.
  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> recorded;
  recorded.Swap(graph.mutable_value_info());
  TensorInfos types = infer_shapes(model);
  for (onnx::ValueInfoProto& info : recorded) {
    const auto known = types.find(info.name());
    if (known != types.end() && known->second.dtype != DType::kUndefined) continue;
    substitute(info, symbols);
    *graph.add_value_info() = info;
  }
  types = infer_shapes(model);
  if (const auto baked = baked_shapes(model, types); !baked.empty()) {
    std::string list;
    for (std::size_t i = 0; i < baked.size() && i < 5; ++i)
      list += fmt::format("{}{}", i == 0 ? "" : "; ", baked[i]);
    if (baked.size() > 5) list += fmt::format("; and {} more", baked.size() - 5);
    return InvalidArgument(
        "{} Reshape node{} hold{} a constant shape that does not fit: {}. The export baked the "
        "size "
        "of its example: export with that size, or with dynamic axes",
        baked.size(), baked.size() == 1 ? "" : "s", baked.size() == 1 ? "s" : "", list);
  }
  for (onnx::ValueInfoProto& output : *graph.mutable_output()) {
    const auto known = types.find(output.name());
    if (known == types.end() || !known->second.has_rank || !output.type().has_tensor_type())
      continue;
    auto& shape = *output.mutable_type()->mutable_tensor_type()->mutable_shape();
    const Shape& dims = known->second.shape;
    if (shape.dim_size() != 0 && shape.dim_size() != static_cast<int>(dims.size())) continue;
    for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
      auto& dim = *(i < shape.dim_size() ? shape.mutable_dim(i) : shape.add_dim());
      if (!dim.has_dim_value() && dims[static_cast<std::size_t>(i)] >= 0)
        dim.set_dim_value(dims[static_cast<std::size_t>(i)]);
    }
  }
  return outcome;
}

}  // namespace passes
}  // namespace tenonnx
