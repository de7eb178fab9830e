// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Lowering of element-wise nodes and transpositions.
#include <algorithm>
#include <numeric>

#include "base/status.h"
#include "passes/constants.h"
#include "passes/edit.h"
#include "passes/rank_collapser.h"

namespace tenonnx {

RankCollapser::Why RankCollapser::lower_elementwise(const onnx::NodeProto& node) {
  const std::string& out = node.output(0);
  const Shape full = *shape(out);
  std::vector<std::string> inputs(node.input().begin(), node.input().end());
  std::string widest;  // an operand of the result's size
  int operands = 0;
  for (const std::string& input : inputs) {
    if (input.empty() || element_count(*shape(input)) == 1) continue;
    ++operands;
    if (element_count(*shape(input)) == element_count(full)) widest = input;
  }
  const std::int64_t count = element_count(full);
  Shape form;
  const Cuts cuts = operand_cuts(node);
  const Shape present = widest.empty() ? Shape() : held(widest).shape;
  const auto chain = chain_cuts_.find(chain_of(out));
  if (!widest.empty() && fits(present) && is_form(present, full, cuts))
    form = present;
  else if (operands <= 1 && !widest.empty())
    form = form_of(count, all_cuts(full).size() < max_rank_ ? all_cuts(full) : Cuts());
  else if (all_cuts(full).size() < max_rank_)
    form = form_of(count, all_cuts(full));
  else if (chain != chain_cuts_.end() && chain->second.size() < max_rank_)
    form = form_of(count, chain->second);
  else if (cuts.size() < max_rank_)
    form = form_of(count, cuts);
  else if (Why why = expand_operands(node, inputs, form); !why.empty())
    return why;
  for (std::string& input : inputs) {
    if (input.empty()) continue;
    const Held h = held(input);
    if (element_count(h.shape) == 1) {
      input = h.shape.size() <= form.size() ? h.name : view(input, {1});
      continue;
    }
    const Shape* const own = types_.contains(input) ? &types_.at(input).shape : &h.shape;
    if (element_count(*own) == count && own->size() >= full.size())
      input = view(input, form);
    else
      input = view(input, operand_form(broadcast_flags(*own, full), full, form));
  }
  const std::string result = result_name(out, form);
  emit(like(node, inputs, {result}));
  hold(out, result, form);
  return {};
}

// Expands one operand along one run of dimensions, such that the rest merges.
RankCollapser::Why RankCollapser::expand_operands(const onnx::NodeProto& node,
                                                  std::vector<std::string>& inputs, Shape& form) {
  const Shape full = *shape(node.output(0));
  Shape large;
  for (const std::int64_t dim : full)
    if (dim != 1) large.push_back(dim);
  std::vector<std::vector<bool>> flags(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].empty() && element_count(*shape(inputs[i])) > 1)
      flags[i] = broadcast_flags(*shape(inputs[i]), full);
  std::int64_t least = -1;
  std::size_t which = 0;
  std::vector<bool> wanted;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::size_t begin = 0; begin < flags[i].size(); ++begin) {
      if (flags[i][begin] || (begin > 0 && !flags[i][begin - 1])) continue;
      std::vector<bool> filled = flags[i];
      for (std::size_t d = begin; d < filled.size() && !filled[d]; ++d) filled[d] = true;
      Cuts cuts = flag_cuts(filled, full);
      for (std::size_t k = 0; k < inputs.size(); ++k)
        if (k != i && !flags[k].empty()) cuts.merge(flag_cuts(flags[k], full));
      std::int64_t cost = 1;
      for (std::size_t d = 0; d < filled.size(); ++d) cost *= filled[d] ? large[d] : 1;
      if (cuts.size() >= max_rank_ || (least >= 0 && cost >= least)) continue;
      least = cost;
      which = i;
      wanted = filled;
      form = form_of(element_count(full), cuts);
    }
  }
  if (least < 0)
    return fmt::format(
        "its operands broadcast in turns: expanding one of them leaves more than {} "
        "dimensions",
        max_rank_);
  // The operand against the dimensions that it is to have.
  Shape from, to;
  for (std::size_t d = 0; d < large.size(); ++d) {
    from.push_back(flags[which][d] ? large[d] : 1);
    to.push_back(wanted[d] ? large[d] : 1);
  }
  const std::vector<bool> kept = broadcast_flags(from, to);
  const Cuts cuts = flag_cuts(kept, to);
  if (cuts.size() >= max_rank_) return "expanding an operand would itself take too many dimensions";
  const Shape low_to = form_of(element_count(to), cuts);
  const Shape low_from = operand_form(kept, to, low_to);
  const std::string base = inputs[which] + "_expanded";
  std::string expanded;
  const auto value = constant(inputs[which]);
  if (value && size_of(value->dtype()) * static_cast<std::size_t>(least) <= kLargestCopy) {
    expanded = add_constant(base, broadcast_to(value->reshaped(low_from).value(), low_to));
  } else {
    expanded = names_.make(base);
    emit(make_node(
        "Expand",
        {view(inputs[which], low_from), add_constant(base + "_shape", int64_vector(low_to))},
        {expanded}));
  }
  held_[expanded] = {expanded, low_to};
  types_[expanded] = {types_[inputs[which]].onnx_type, true, {}};
  // Its shape as the node would see it, 1s included.
  Shape& seen = types_[expanded].shape;
  std::size_t d = 0;
  for (const std::int64_t dim : full) seen.push_back(dim == 1 ? 1 : to[d++]);
  inputs[which] = expanded;
  return {};
}

RankCollapser::Why RankCollapser::lower_transpose(const onnx::NodeProto& node) {
  const Shape in = *shape(node.input(0));
  std::vector<std::int64_t> given = attribute_ints(node, "perm");
  if (given.empty())
    for (std::size_t i = in.size(); i-- > 0;) given.push_back(static_cast<std::int64_t>(i));
  std::vector<std::size_t> perm;  // of dimensions larger than 1
  for (const std::int64_t axis : given)
    if (in[static_cast<std::size_t>(axis)] != 1) perm.push_back(static_cast<std::size_t>(axis));
  std::vector<std::size_t> order = perm;
  std::sort(order.begin(), order.end());
  if (order == perm) return lower_view(node);
  Cuts cuts;  // between neighbours that do not stay neighbours
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    const auto place = std::find(perm.begin(), perm.end(), order[i]);
    if (place + 1 == perm.end() || *(place + 1) != order[i + 1])
      cuts.insert(elements_behind(in, order[i]));
  }
  const auto form = choose(node.input(0), in, cuts);
  if (!form) return transpose_in_steps(node, perm, cuts);
  std::vector<std::int64_t> moved;
  for (std::size_t d = 0; d < form->size(); ++d)
    if ((*form)[d] == 1) moved.push_back(static_cast<std::int64_t>(d));
  for (const std::size_t axis : perm) {
    // The dimension of the form that holds this one: the first that does not end before it.
    std::size_t d = 0;
    while ((*form)[d] == 1 || elements_behind(*form, d) > elements_behind(in, axis)) ++d;
    if (moved.empty() || moved.back() != static_cast<std::int64_t>(d))
      moved.push_back(static_cast<std::int64_t>(d));
  }
  Shape as;
  for (const std::int64_t d : moved) as.push_back((*form)[static_cast<std::size_t>(d)]);
  const std::string result = result_name(node.output(0), as);
  onnx::NodeProto low = like(node, {view(node.input(0), *form)}, {result});
  set_attribute(low, "perm", moved);
  emit(std::move(low));
  hold(node.output(0), result, as);
  return {};
}

// Brings one block after the other to its place: [before | skipped | block | rest] swaps two.
RankCollapser::Why RankCollapser::transpose_in_steps(const onnx::NodeProto& node,
                                                     const std::vector<std::size_t>& perm,
                                                     const Cuts& cuts) {
  if (max_rank_ < 4) return "its blocks move in more than three dimensions";
  const Shape in = *shape(node.input(0));
  const Shape blocks = form_of(element_count(in), cuts);
  const auto block_of = [&](std::size_t axis) {
    std::size_t d = 0;
    while (elements_behind(blocks, d) > elements_behind(in, axis)) ++d;
    return d;
  };
  std::vector<std::size_t> target, now(blocks.size());
  for (const std::size_t axis : perm)
    if (target.empty() || target.back() != block_of(axis)) target.push_back(block_of(axis));
  std::iota(now.begin(), now.end(), std::size_t{0});
  const auto size = [&](std::size_t begin, std::size_t end) {
    std::int64_t product = 1;
    for (std::size_t i = begin; i < end; ++i) product *= blocks[now[i]];
    return product;
  };
  Held at = held(node.input(0));
  int step = 0;
  for (std::size_t i = 0; i < target.size(); ++i) {
    const auto j =
        static_cast<std::size_t>(std::find(now.begin(), now.end(), target[i]) - now.begin());
    if (j == i) continue;
    std::size_t end = j + 1;  // more blocks that follow it at the target
    while (end < now.size() && i + (end - j) < target.size() && now[end] == target[i + (end - j)])
      ++end;
    const std::int64_t parts[] = {size(0, i), size(i, j), size(j, end), size(end, now.size())};
    Shape form, as;
    std::vector<std::int64_t> places(4, -1), swapped;
    for (std::size_t p = 0; p < 4; ++p) {
      if (parts[p] == 1) continue;
      places[p] = static_cast<std::int64_t>(form.size());
      form.push_back(parts[p]);
    }
    for (const std::size_t p : {0, 2, 1, 3}) {
      if (places[p] < 0) continue;
      swapped.push_back(places[p]);
      as.push_back(parts[p]);
    }
    std::rotate(now.begin() + static_cast<std::ptrdiff_t>(i),
                now.begin() + static_cast<std::ptrdiff_t>(j),
                now.begin() + static_cast<std::ptrdiff_t>(end));
    const bool last = now == target;
    std::string from = at.name;
    if (at.shape != form)
      from = step == 0 ? view(node.input(0), form)
                       : reshape(at, form, names_.make(node.output(0) + "_blocks"));
    const std::string result = last ? result_name(node.output(0), as)
                                    : names_.make(node.output(0) + fmt::format("_step{}", step));
    onnx::NodeProto low = make_node("Transpose", {from}, {result});
    if (last) low.set_name(node.name());
    set_attribute(low, "perm", swapped);
    emit(std::move(low));
    at = {result, as};
    ++step;
    if (last) break;
  }
  hold(node.output(0), at.name, at.shape);
  return {};
}

}  // namespace tenonnx
