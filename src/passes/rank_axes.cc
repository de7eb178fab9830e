// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Lowering of nodes that work along axes.
#include <algorithm>
#include <numeric>

#include "base/status.h"
#include "passes/constants.h"
#include "passes/edit.h"
#include "passes/rank_collapser.h"

namespace tenonnx {
namespace {

// The attribute axis, counted from the front.
std::size_t axis_of(const onnx::NodeProto& node, const Shape& shape, std::int64_t fallback) {
  const std::int64_t axis = attribute_or(node, "axis", fallback);
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(shape.size()) : axis);
}

}  // namespace

RankCollapser::Why RankCollapser::lower_softmax(const onnx::NodeProto& node) {
  if (model_.opset() < 13) return "before opset 13 its axis begins a block of dimensions";
  const Shape in = *shape(node.input(0));
  Shape form;
  std::size_t d = 0;
  if (Why why = separate(node.input(0), axis_of(node, in, -1), form, d); !why.empty()) return why;
  const std::string result = result_name(node.output(0), form);
  onnx::NodeProto low = like(node, {view(node.input(0), form)}, {result});
  set_attribute(low, "axis", static_cast<std::int64_t>(d));
  emit(std::move(low));
  hold(node.output(0), result, form);
  return {};
}

RankCollapser::Why RankCollapser::lower_layer_norm(const onnx::NodeProto& node) {
  const Shape in = *shape(node.input(0));
  const std::int64_t axis = attribute_or(node, "axis", std::int64_t{-1});
  if (axis != -1 && axis + 1 != static_cast<std::int64_t>(in.size()))
    return "it normalizes more than the last dimension";
  if (node.output_size() > 1) return "its mean or deviation is used";
  if (in.back() == 1) return "its axis has size 1";
  for (int i = 1; i < node.input_size(); ++i)
    if (!node.input(i).empty() && element_count(*shape(node.input(i))) != in.back())
      return "its scale or bias has another size than its axis";
  Cuts cuts;
  isolate(in, in.size() - 1, cuts);
  const auto form = choose(node.input(0), in, cuts);
  if (!form || form->back() != in.back()) return "its axis does not come last";
  std::vector<std::string> inputs = {view(node.input(0), *form)};
  for (int i = 1; i < node.input_size(); ++i)
    inputs.push_back(node.input(i).empty() ? "" : view(node.input(i), {in.back()}));
  const std::string result = result_name(node.output(0), *form);
  onnx::NodeProto low = like(node, inputs, {result});
  set_attribute(low, "axis", std::int64_t{-1});
  emit(std::move(low));
  hold(node.output(0), result, *form);
  return {};
}

RankCollapser::Why RankCollapser::lower_reduction(const onnx::NodeProto& node) {
  const Shape in = *shape(node.input(0));
  const bool by_input = node.op_type() == "ReduceSum" ? model_.opset() >= 13 : model_.opset() >= 18;
  std::vector<std::int64_t> axes = attribute_ints(node, "axes");
  if (node.input_size() > 1 && !node.input(1).empty()) {
    const auto values = integers(node.input(1));
    if (!values) return "its axes are not constant";
    axes = *values;
  }
  if (axes.empty()) {
    if (attribute_or(node, "noop_with_empty_axes", std::int64_t{0}) != 0) return "it has no axes";
    for (std::size_t i = 0; i < in.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  std::vector<bool> kept;  // of dimensions larger than 1
  for (std::size_t d = 0; d < in.size(); ++d) {
    if (in[d] == 1) continue;
    const auto axis = static_cast<std::int64_t>(d);
    kept.push_back(std::none_of(axes.begin(), axes.end(), [&](std::int64_t a) {
      return a == axis || a + static_cast<std::int64_t>(in.size()) == axis;
    }));
  }
  if (std::find(kept.begin(), kept.end(), false) == kept.end())
    return "it reduces dimensions of 1 alone";
  const Cuts cuts = flag_cuts(kept, in);
  const auto form = choose(node.input(0), in, cuts);
  if (!form) return "what it reduces cannot be told apart in so few dimensions";
  const bool keep = attribute_or(node, "keepdims", std::int64_t{1}) != 0;
  // The kept dimensions are a broadcast operand of the input: 1 where it reduces.
  Shape reduced_to = operand_form(kept, in, *form);
  reduced_to.insert(reduced_to.begin(), form->size() - reduced_to.size(), 1);
  std::vector<std::int64_t> low_axes;
  Shape as;
  for (std::size_t d = 0; d < form->size(); ++d) {
    if ((*form)[d] != reduced_to[d]) {
      low_axes.push_back(static_cast<std::int64_t>(d));
      if (keep) as.push_back(1);
    } else {
      as.push_back((*form)[d]);
    }
  }
  std::vector<std::string> inputs = {view(node.input(0), *form)};
  if (by_input) inputs.push_back(add_constant(node.output(0) + "_axes", int64_vector(low_axes)));
  const std::string result = result_name(node.output(0), as);
  onnx::NodeProto low = like(node, inputs, {result});
  if (!by_input) set_attribute(low, "axes", low_axes);
  emit(std::move(low));
  hold(node.output(0), result, as);
  return {};
}

RankCollapser::Why RankCollapser::lower_slice(const onnx::NodeProto& node) {
  const Shape in = *shape(node.input(0)), out = *shape(node.output(0));
  if (node.input_size() < 3) return "its bounds are not constant";
  const auto starts = integers(node.input(1)), ends = integers(node.input(2));
  std::optional<std::vector<std::int64_t>> axes(std::in_place), steps(std::in_place);
  if (starts && (node.input_size() < 4 || node.input(3).empty())) {
    axes->resize(starts->size());
    std::iota(axes->begin(), axes->end(), std::int64_t{0});
  } else if (node.input_size() > 3) {
    axes = integers(node.input(3));
  }
  if (starts && (node.input_size() < 5 || node.input(4).empty()))
    steps->assign(starts->size(), 1);
  else if (node.input_size() > 4)
    steps = integers(node.input(4));
  if (!starts || !ends || !axes || !steps) return "its bounds are not constant";
  std::vector<std::int64_t> low_starts, low_ends, low_axes, low_steps;
  std::vector<std::size_t> cut_axes;
  Cuts cuts;
  for (std::size_t i = 0; i < axes->size(); ++i) {
    const std::int64_t a =
        (*axes)[i] < 0 ? (*axes)[i] + static_cast<std::int64_t>(in.size()) : (*axes)[i];
    const auto axis = static_cast<std::size_t>(a);
    if (in[axis] == 1 || (in[axis] == out[axis] && (*steps)[i] == 1)) continue;  // all of it
    isolate(in, axis, cuts);
    cut_axes.push_back(axis);
    low_starts.push_back((*starts)[i]);
    low_ends.push_back((*ends)[i]);
    low_steps.push_back((*steps)[i]);
  }
  if (cut_axes.empty()) return lower_view(node);
  const auto form = choose(node.input(0), in, cuts);
  if (!form) return "what it cuts cannot be told apart in so few dimensions";
  Shape as = *form;
  for (const std::size_t axis : cut_axes) {
    const std::size_t d = *dimension_of(*form, in, axis);
    as[d] = out[axis];
    low_axes.push_back(static_cast<std::int64_t>(d));
  }
  const std::string& base = node.output(0);
  const std::vector<std::string> inputs = {view(node.input(0), *form),
                                           add_constant(base + "_starts", int64_vector(low_starts)),
                                           add_constant(base + "_ends", int64_vector(low_ends)),
                                           add_constant(base + "_axes", int64_vector(low_axes)),
                                           add_constant(base + "_steps", int64_vector(low_steps))};
  const std::string result = result_name(base, as);
  emit(like(node, inputs, {result}));
  hold(base, result, as);
  return {};
}

RankCollapser::Why RankCollapser::separate(const std::string& input, std::size_t axis, Shape& form,
                                           std::size_t& dimension) const {
  const Shape in = *shape(input);
  if (in[axis] == 1) return "its axis has size 1";
  Cuts cuts;
  isolate(in, axis, cuts);
  const auto chosen = choose(input, in, cuts);
  if (!chosen) return "its axis cannot be told apart in so few dimensions";
  form = *chosen;
  dimension = *dimension_of(form, in, axis);
  return {};
}

RankCollapser::Why RankCollapser::lower_split(const onnx::NodeProto& node) {
  const Shape in = *shape(node.input(0));
  const std::size_t axis = axis_of(node, in, 0);
  Shape form;
  std::size_t d = 0;
  if (Why why = separate(node.input(0), axis, form, d); !why.empty()) return why;
  std::vector<std::int64_t> sizes;
  std::vector<std::string> results;
  std::vector<Shape> shapes;
  for (const std::string& out : node.output()) {
    if (out.empty()) return "one of its outputs has no name";
    sizes.push_back((*shape(out))[axis]);
    shapes.push_back(form);
    shapes.back()[d] = sizes.back();
    results.push_back(result_name(out, shapes.back()));
  }
  std::vector<std::string> inputs = {view(node.input(0), form)};
  if (model_.opset() >= 13)
    inputs.push_back(add_constant(node.output(0) + "_sizes", int64_vector(sizes)));
  onnx::NodeProto low = like(node, inputs, results);
  remove_attribute(low, "num_outputs");
  if (model_.opset() < 13) set_attribute(low, "split", sizes);
  set_attribute(low, "axis", static_cast<std::int64_t>(d));
  emit(std::move(low));
  for (std::size_t i = 0; i < results.size(); ++i)
    hold(node.output(static_cast<int>(i)), results[i], shapes[i]);
  return {};
}

// Joining along an axis is joining along the block of this axis and all behind it.
RankCollapser::Why RankCollapser::lower_concat(const onnx::NodeProto& node) {
  const Shape out = *shape(node.output(0));
  const std::size_t axis = axis_of(node, out, 0);
  const std::int64_t behind = elements_behind(out, axis);
  const Shape first = *shape(node.input(0));
  const std::int64_t block = first[axis] * behind;
  // The first input's own form where one of its dimensions begins with this block.
  Shape form = held(node.input(0)).shape;
  std::size_t d = form.size();
  for (std::size_t i = 0; i < form.size() && fits(form); ++i)
    if (form[i] * elements_behind(form, i) == block && behind % elements_behind(form, i) == 0)
      d = i;
  if (d == form.size()) {
    Cuts cuts;
    for (const std::int64_t cut : all_cuts(first))
      if (cut > block) cuts.insert(cut / block);
    const std::int64_t before = element_count(first) / block;
    if (cuts.size() + 2 > max_rank_) cuts.clear();
    form = before == 1 ? Shape() : form_of(before, cuts);
    d = form.size();
    form.push_back(block);
  }
  const std::int64_t inner = elements_behind(form, d);
  std::vector<std::string> inputs;
  for (const std::string& input : node.input()) {
    Shape as = form;
    as[d] = (*shape(input))[axis] * behind / inner;
    inputs.push_back(view(input, as));
  }
  Shape as = form;
  as[d] = out[axis] * behind / inner;
  const std::string result = result_name(node.output(0), as);
  onnx::NodeProto low = like(node, inputs, {result});
  set_attribute(low, "axis", static_cast<std::int64_t>(d));
  emit(std::move(low));
  hold(node.output(0), result, as);
  return {};
}

RankCollapser::Why RankCollapser::lower_gather(const onnx::NodeProto& node) {
  const Shape in = *shape(node.input(0)), index = *shape(node.input(1));
  const std::size_t axis = axis_of(node, in, 0);
  Shape form;
  std::size_t d = 0;
  if (Why why = separate(node.input(0), axis, form, d); !why.empty()) return why;
  Shape as = form;
  std::string indices = held(node.input(1)).name;
  if (index.empty()) {
    as.erase(as.begin() + static_cast<std::ptrdiff_t>(d));
  } else {
    as[d] = element_count(index);
    indices = view(node.input(1), {as[d]});
  }
  const std::string result = result_name(node.output(0), as);
  onnx::NodeProto low = like(node, {view(node.input(0), form), indices}, {result});
  set_attribute(low, "axis", static_cast<std::int64_t>(d));
  emit(std::move(low));
  hold(node.output(0), result, as);
  return {};
}

RankCollapser::Why RankCollapser::lower_expand(const onnx::NodeProto& node) {
  const Shape in = *shape(node.input(0)), out = *shape(node.output(0));
  if (element_count(in) == element_count(out)) return lower_view(node);
  const std::vector<bool> flags = broadcast_flags(in, out);
  const Cuts cuts = flag_cuts(flags, out);
  Shape form;
  if (all_cuts(out).size() < max_rank_)
    form = form_of(element_count(out), all_cuts(out));
  else if (cuts.size() < max_rank_)
    form = form_of(element_count(out), cuts);
  else
    return "what it repeats cannot be told apart in so few dimensions";
  const std::string result = result_name(node.output(0), form);
  emit(like(node,
            {view(node.input(0), operand_form(flags, out, form)),
             add_constant(node.output(0) + "_shape", int64_vector(form))},
            {result}));
  hold(node.output(0), result, form);
  return {};
}

RankCollapser::Why RankCollapser::lower_tile(const onnx::NodeProto& node) {
  const Shape in = *shape(node.input(0)), out = *shape(node.output(0));
  if (element_count(in) == element_count(out)) return lower_view(node);
  Cuts cuts;
  for (std::size_t d = 0; d < out.size(); ++d)
    if (in[d] != out[d]) isolate(out, d, cuts);
  if (all_cuts(out).size() < max_rank_) cuts = all_cuts(out);
  if (cuts.size() >= max_rank_) return "what it repeats cannot be told apart in so few dimensions";
  const Shape form = form_of(element_count(out), cuts);
  Shape from = form;
  std::vector<std::int64_t> repeats(form.size(), 1);
  for (std::size_t d = 0; d < out.size(); ++d) {
    if (in[d] == out[d]) continue;
    const std::size_t at = *dimension_of(form, out, d);
    from[at] = in[d];
    repeats[at] = out[d] / in[d];
  }
  const std::string result = result_name(node.output(0), form);
  emit(like(
      node,
      {view(node.input(0), from), add_constant(node.output(0) + "_repeats", int64_vector(repeats))},
      {result}));
  hold(node.output(0), result, form);
  return {};
}

}  // namespace tenonnx
