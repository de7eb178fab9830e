// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// fold_scale_into_conv: Mul, Add, Sub and Div by constants, one number or one a channel, go into
// the constants of the Conv or ConvTranspose beside them: frozen BatchNormalization behind it, the
// learned affine of HGNetV2 before it.
//
// before: y = Conv(x, W, B) * a + b      after: y = Conv(x, W', B'), W'[m] = a[m] W[m]
//                                               B'[m] = a[m] B[m] + b[m]
// before: y = Conv(x * a + b, W, B)      after: y = Conv(x, W', B'), W'[m, c] = a[c] W[m, c]
//                                               B'[m] = B[m] + sum over c and taps of b[c] W[m, c]
//
// Conditions: the whole chain of such nodes beside a Conv is folded at once, in double, and stored
// in the weight's dtype; each tensor between is used there alone, and so is the weight. Class
// algebraic.
// Refuses: a weight that is computed or of several nodes; an addend before a Conv that pads (the
// zeros of the padding do not have it) or before a ConvTranspose; the last factor of a GELU, which
// devices know as a whole; a result that overflows the dtype or leaves a channel below its smallest
// normal number.
#include <fmt/format.h>

#include <string>

#include "base/status.h"
#include "base/wording.h"
#include "passes/conv_fold.h"
#include "passes/gelu_pattern.h"
#include "passes/options.h"
#include "passes/passes.h"

namespace tenonnx {
namespace {

bool has_constant_operand(const Rewriter& r, const onnx::NodeProto& node) {
  const bool takes_two =
      is_op(node, "Mul") || is_op(node, "Add") || is_op(node, "Sub") || is_op(node, "Div");
  return takes_two &&
         (r.constant(node.input(0)) != nullptr || r.constant(node.input(1)) != nullptr);
}

// Whether arithmetic with a constant stands beside node `i`: only then is there anything to say.
bool beside_constant(const Rewriter& r, int i) {
  const int before = r.producer(r.node(i).input(0));
  if (before >= 0 && has_constant_operand(r, r.node(before))) return true;
  for (const Use& use : r.index().uses(r.node(i).output(0)))
    if (use.input >= 0 && has_constant_operand(r, r.node(use.node))) return true;
  return false;
}

struct Chain {
  ChannelAffine affine;
  std::string end;  // the tensor at its far end
  std::vector<int> nodes;
  int last = -1;            // of a chain behind: the node that makes `end`
  std::string reason = {};  // why it goes no further
};

Chain chain_behind(const Rewriter& r, const ConvParts& conv) {
  Chain chain{ChannelAffine(conv.out_channels), r.node(conv.node).output(0), {}};
  for (int user = r.sole_user(chain.end); user >= 0; user = r.sole_user(chain.end)) {
    const auto next = elementwise_affine(r, r.node(user), chain.end, conv.out_channels, conv.rank);
    if (!next) return chain;
    chain.affine = chain.affine.then(*next);
    chain.nodes.push_back(user);
    chain.last = user;
    chain.end = r.node(user).output(0);
  }
  if (chain.nodes.empty()) {
    for (const Use& use : r.index().uses(chain.end)) {
      // A Div is the argument of a GELU, which uses its x twice: not worth a word.
      if (use.input < 0 || is_op(r.node(use.node), "Div")) continue;
      if (elementwise_affine(r, r.node(use.node), chain.end, conv.out_channels, conv.rank))
        chain.reason = fmt::format("'{}' is used elsewhere than by {} too", chain.end,
                                   node_label(r.node(use.node)));
    }
  }
  return chain;
}

Chain chain_before(const Rewriter& r, const ConvParts& conv) {
  Chain chain{ChannelAffine(conv.in_channels), r.node(conv.node).input(0), {}};
  for (int maker = r.producer(chain.end); maker >= 0; maker = r.producer(chain.end)) {
    const onnx::NodeProto& node = r.node(maker);
    if (node.input_size() != 2) return chain;
    const std::string& data = node.input(r.constant(node.input(0)) == nullptr ? 0 : 1);
    const auto shape = r.shape(data);
    // A constant must not be what gives the tensor its channels.
    if (!shape || shape->size() != conv.rank || (*shape)[1] != conv.in_channels) return chain;
    const auto step = elementwise_affine(r, node, data, conv.in_channels, conv.rank);
    if (!step) return chain;
    const ChannelAffine longer = step->then(chain.affine);
    if (r.sole_user(chain.end) < 0) {
      chain.reason = fmt::format("'{}' is used elsewhere too", chain.end);
    } else if (ends_gelu(r, maker)) {
      chain.reason = fmt::format("{} is the last factor of a GELU", node_label(node));
    } else {
      chain.reason = shift_reason(conv, longer);
    }
    if (!chain.reason.empty()) return chain;
    chain.affine = longer;
    chain.nodes.push_back(maker);
    chain.end = data;
  }
  return chain;
}

}  // namespace

namespace passes {

Result<PassOutcome> fold_scale_into_conv(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("fold_scale_into_conv", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    if (!is_conv(r.node(i)) || !beside_constant(r, i)) return;
    ConvParts conv;
    std::string reason = read_conv(r, i, conv);
    if (!reason.empty()) return r.refuse(i, reason);
    const Chain behind = chain_behind(r, conv), before = chain_before(r, conv);
    if (behind.nodes.empty() && before.nodes.empty()) {
      reason = behind.reason.empty() ? before.reason : behind.reason;
      if (!reason.empty()) r.refuse(i, reason);
      return;
    }
    FoldedConv folded;
    reason = fold_conv(conv, before.affine, behind.affine, folded);
    if (!reason.empty()) return r.refuse(i, reason);
    std::vector<int> nodes = {i};
    nodes.insert(nodes.end(), behind.nodes.begin(), behind.nodes.end());
    nodes.insert(nodes.end(), before.nodes.begin(), before.nodes.end());
    if (!r.begin(nodes)) return;
    const int last = behind.last >= 0 ? behind.last : i;
    r.replace(last, folded_node(r, conv, folded, before.end, behind.end));
    for (const int node : nodes)
      if (node != last) r.remove(node);
    r.apply(i, fmt::format("folds in {} behind and {} before", counted(behind.nodes.size(), "node"),
                           before.nodes.size()));
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
