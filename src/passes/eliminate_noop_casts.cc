// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// eliminate_noop_casts: removes casts that change nothing.
//
// before: y = Cast(x, to = dtype of x)                  after: every use of y reads x
//         y = CastLike(x, t), t of x's dtype
//         y = Cast(Cast(x, to = B), to = C)             after: y = Cast(x, to = C)
//
// Conditions of the pair: every value of x's dtype A is a value of B, so that the first cast loses
// nothing. Where x is an integer and B a float, every value of A must be one of C too if C is an
// integer: conversions out of range are not defined.
// Class bitwise.
// Refuses: a cast to its own dtype between two tensors that must keep their names (inputs,
// outputs); pairs whose first cast may lose something.
#include <onnx/onnx_pb.h>

#include <string>

#include "base/status.h"
#include "model/tensor_proto.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tenonnx {
namespace {

// What a dtype holds exactly: the integers of bits and sign, or a float's significand and exponent.
struct Range {
  bool is_float = false, is_signed = true;
  int bits = 0;  // of an integer without its sign; of a float's significand
  int exponent = 0;
};

bool range_of(DType dtype, Range& range) {
  switch (dtype) {
    case DType::kBool:
      range = {false, false, 1, 0};
      return true;
    case DType::kUInt8:
      range = {false, false, 8, 0};
      return true;
    case DType::kUInt16:
      range = {false, false, 16, 0};
      return true;
    case DType::kUInt32:
      range = {false, false, 32, 0};
      return true;
    case DType::kUInt64:
      range = {false, false, 64, 0};
      return true;
    case DType::kInt8:
      range = {false, true, 7, 0};
      return true;
    case DType::kInt16:
      range = {false, true, 15, 0};
      return true;
    case DType::kInt32:
      range = {false, true, 31, 0};
      return true;
    case DType::kInt64:
      range = {false, true, 63, 0};
      return true;
    case DType::kFloat16:
      range = {true, true, 11, 5};
      return true;
    case DType::kBFloat16:
      range = {true, true, 8, 8};
      return true;
    case DType::kFloat32:
      range = {true, true, 24, 8};
      return true;
    case DType::kFloat64:
      range = {true, true, 53, 11};
      return true;
    default:
      return false;
  }
}

// Every value of `a` is one of `b`.
bool contains_all(DType b, DType a) {
  if (a == b) return a != DType::kUndefined;
  Range from, to;
  if (!range_of(a, from) || !range_of(b, to) || b == DType::kBool) return false;
  if (from.is_float) return to.is_float && to.bits >= from.bits && to.exponent >= from.exponent;
  // 2^15 and more does not fit float16, whose largest power of two is 2^15.
  if (to.is_float) return to.bits >= from.bits && (to.exponent > 5 || from.bits <= 11);
  return to.bits >= from.bits && (to.is_signed || !from.is_signed);
}

bool is_integer(DType dtype) {
  Range range;
  return range_of(dtype, range) && !range.is_float;
}

// Cast(Cast(x: a, to = b), to = c) is Cast(x, to = c).
bool first_is_lossless(DType a, DType b, DType c) {
  if (!contains_all(b, a)) return false;
  if (is_integer(a) && !is_integer(b) && is_integer(c) && c != DType::kBool)
    return contains_all(c, a);
  Range range;
  return range_of(c, range);
}

}  // namespace

namespace passes {

Result<PassOutcome> eliminate_noop_casts(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("eliminate_noop_casts", options, {}));
  Rewriter r(model);
  const auto onnx_type = [&](const std::string& name) {
    const InferredType* type = r.type(name);
    return type == nullptr ? 0 : type->onnx_type;
  };
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& node = r.node(i);
    const bool like = is_op(node, "CastLike");
    if (!like && !is_op(node, "Cast")) return;
    const int from = onnx_type(node.input(0));
    const int to = like ? onnx_type(node.input(1))
                        : static_cast<int>(attribute_or(node, "to", std::int64_t{0}));
    if (from == 0 || to == 0) return;
    if (from == to) {
      if (!r.begin({i})) return;
      if (!r.alias(node.output(0), node.input(0)))
        return r.refuse(i, "joins two tensors that must keep their own names");
      r.remove(i);
      return r.apply(i, fmt::format("{} is what it was already", onnx_type_name(from)));
    }
    const int first = r.producer(node.input(0), "Cast");
    if (like || first < 0) return;
    const std::string& x = r.node(first).input(0);
    const DType a = r.dtype(x), b = from_onnx_type(from), c = from_onnx_type(to);
    if (!first_is_lossless(a, b, c)) {
      if (a != DType::kUndefined)
        r.refuse(i, fmt::format("the cast before it, {} to {}, may lose something", to_string(a),
                                onnx_type_name(from)));
      return;
    }
    if (!r.begin({first, i})) return;
    onnx::NodeProto direct = node;
    direct.set_input(0, x);
    r.replace(i, std::move(direct));
    r.apply(i,
            fmt::format("takes {} as it is, not by way of {}", to_string(a), onnx_type_name(from)));
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
