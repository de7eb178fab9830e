// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/serialized_weights.h"

#include <onnx/onnx_pb.h>

#include <numeric>

#include "base/status.h"
#include "model/shared_weights.h"
#include "model/tensor_proto.h"

namespace tenonnx {
namespace {

constexpr std::size_t kAlignment = 64;

// Field numbers of onnx.proto.
constexpr std::uint32_t kGraph = onnx::ModelProto::kGraphFieldNumber;
constexpr std::uint32_t kInitializer = onnx::GraphProto::kInitializerFieldNumber;
constexpr std::uint32_t kRawData = onnx::TensorProto::kRawDataFieldNumber;

enum WireType : std::uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Field {
  std::uint32_t number = 0, type = 0;
  std::string_view whole;  // with its tag
  std::string_view body;   // of kBytes
  std::uint64_t value = 0;
};

// The fields of one message, in their order.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  // False at the end, and where it is no message: then failed().
  bool next(Field& field) {
    if (rest_.empty() || failed_) return false;
    const std::string_view begin = rest_;
    std::uint64_t tag = 0;
    if (!varint(tag) || tag > UINT32_MAX || tag < 8) return fail();
    field.number = static_cast<std::uint32_t>(tag) >> 3;
    field.type = static_cast<std::uint32_t>(tag) & 7;
    field.body = {};
    std::uint64_t length = 0;
    switch (field.type) {
      case kVarint:
        if (!varint(field.value)) return fail();
        break;
      case kFixed64:
        length = 8;
        break;
      case kFixed32:
        length = 4;
        break;
      case kBytes:
        if (!varint(length)) return fail();
        break;
      default:  // groups: no field of ONNX has one
        return fail();
    }
    if (length > rest_.size()) return fail();
    if (field.type == kBytes) field.body = rest_.substr(0, length);
    rest_.remove_prefix(length);
    field.whole = begin.substr(0, begin.size() - rest_.size());
    return true;
  }
  bool failed() const { return failed_; }

 private:
  bool fail() {
    failed_ = true;
    return false;
  }
  bool varint(std::uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  std::string_view rest_;
  bool failed_ = false;
};

void append_varint(std::uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  out += static_cast<char>(value);
}

// The tag of a kBytes field and the length of what follows.
void append_head(std::uint32_t number, std::uint64_t length, std::string& out) {
  append_varint(std::uint64_t{number} << 3 | kBytes, out);
  append_varint(length, out);
}

void append_field(std::uint32_t number, std::string_view body, std::string& out) {
  append_head(number, body.size(), out);
  out += body;
}

bool refers_elsewhere(std::string_view tensor) {
  Fields fields(tensor);
  for (Field field; fields.next(field);)
    if (field.number == onnx::TensorProto::kDataLocationFieldNumber)
      return field.value == onnx::TensorProto::EXTERNAL;
  return false;
}

std::uint64_t total(const std::vector<std::string_view>& pieces) {
  return std::accumulate(
      pieces.begin(), pieces.end(), std::uint64_t{0},
      [](std::uint64_t sum, std::string_view piece) { return sum + piece.size(); });
}

class Taker {
 public:
  Taker(std::string_view model, std::string_view location) : model_(model), location_(location) {}

  std::optional<TakenWeights> run() {
    Fields fields(model_);
    for (Field field; fields.next(field);) {
      if (field.number != kGraph || field.type != kBytes) {
        taken_.proto += field.whole;
        continue;
      }
      std::string graph;
      if (!take_graph(field.body, graph)) return std::nullopt;
      append_field(kGraph, graph, taken_.proto);
    }
    if (fields.failed() || taken_.moves.empty()) return std::nullopt;
    return std::move(taken_);
  }

 private:
  bool take_graph(std::string_view graph, std::string& out) {
    Fields fields(graph);
    for (Field field; fields.next(field);) {
      if (field.number == kInitializer && field.type == kBytes &&
          field.body.size() > kSharedBytes) {
        std::string tensor;
        if (take_tensor(field.body, tensor)) {
          append_field(kInitializer, tensor, out);
          continue;
        }
      }
      out += field.whole;
    }
    return !fields.failed();
  }

  // False where it stays as it is.
  bool take_tensor(std::string_view tensor, std::string& out) {
    std::string_view data;
    Fields fields(tensor);
    for (Field field; fields.next(field);) {
      const bool is_data = field.number == kRawData && field.type == kBytes;
      const bool is_elsewhere = field.number == onnx::TensorProto::kDataLocationFieldNumber ||
                                field.number == onnx::TensorProto::kExternalDataFieldNumber;
      const bool holds_strings = field.number == onnx::TensorProto::kDataTypeFieldNumber &&
                                 field.value == onnx::TensorProto::STRING;
      if (is_elsewhere || holds_strings || (is_data && !data.empty())) return false;
      if (is_data)
        data = field.body;
      else
        out += field.whole;
    }
    if (fields.failed() || data.size() < kSharedBytes) return false;
    const auto from = static_cast<std::size_t>(data.data() - model_.data());
    const std::size_t to = (end_ + kAlignment - 1) / kAlignment * kAlignment;
    if (to > from) return false;  // the tensors before it leave no room
    taken_.moves.push_back({from, to, data.size()});
    end_ = to + data.size();
    onnx::TensorProto reference;
    set_external(reference, {std::string(location_), to, data.size(), true});
    out += reference.SerializeAsString();
    return true;
  }

  const std::string_view model_, location_;
  std::size_t end_ = 0;  // of what lies in its place already
  TakenWeights taken_;
};

}  // namespace

std::optional<TakenWeights> take_weights(std::string_view model, std::string_view location) {
  return Taker(model, location).run();
}

Result<SerializedModel> SerializedModel::with_weights(
    std::string_view proto,
    const std::function<std::optional<std::string_view>(const onnx::TensorProto&)>& bytes_of) {
  SerializedModel out;
  const auto own = [&](std::string bytes) -> std::string_view {
    return out.own_.emplace_back(std::move(bytes));
  };
  // Pieces that lie one behind the other are one.
  const auto add = [](std::vector<std::string_view>& to, std::string_view piece) {
    if (!to.empty() && to.back().data() + to.back().size() == piece.data())
      to.back() = {to.back().data(), to.back().size() + piece.size()};
    else if (!piece.empty())
      to.push_back(piece);
  };
  const auto add_tensor = [&](std::string_view body, std::vector<std::string_view>& to) {
    onnx::TensorProto tensor;
    if (!refers_elsewhere(body) ||
        !tensor.ParseFromArray(body.data(), static_cast<int>(body.size())) || !is_shared(tensor))
      return false;
    const auto data = bytes_of(tensor);
    if (!data) return false;
    tensor.clear_external_data();
    tensor.clear_data_location();
    const std::string_view rest = own(tensor.SerializeAsString());
    // Protobuf writes fields in the order of their numbers.
    std::size_t before = 0;
    Fields fields(rest);
    for (Field field; fields.next(field) && field.number < kRawData;) before += field.whole.size();
    std::string head;
    append_head(kRawData, data->size(), head);
    std::string start;
    append_head(kInitializer, rest.size() + head.size() + data->size(), start);
    to.push_back(own(start + std::string(rest.substr(0, before)) + head));
    to.push_back(*data);
    if (before < rest.size()) to.push_back(rest.substr(before));
    return true;
  };
  Fields fields(proto);
  for (Field field; fields.next(field);) {
    if (field.number != kGraph || field.type != kBytes) {
      add(out.pieces_, field.whole);
      continue;
    }
    std::vector<std::string_view> graph;
    Fields parts(field.body);
    for (Field part; parts.next(part);)
      if (part.number != kInitializer || !add_tensor(part.body, graph)) add(graph, part.whole);
    if (parts.failed()) return Internal("the graph cannot be serialized");
    std::string head;
    append_head(kGraph, total(graph), head);
    out.pieces_.push_back(own(std::move(head)));
    out.pieces_.insert(out.pieces_.end(), graph.begin(), graph.end());
  }
  if (fields.failed()) return Internal("the model cannot be serialized");
  return out;
}

std::uint64_t SerializedModel::size() const { return total(pieces_); }

}  // namespace tenonnx
