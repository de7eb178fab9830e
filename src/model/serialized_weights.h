// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Serialized models without their large weights, and with them again, without parsing or copying
// the weights. Source: the encoding of Protocol Buffers and the field numbers of onnx.proto.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenonnx/base.h"

namespace onnx {
class TensorProto;
}

namespace tenonnx {

// What taking the large initializers of the main graph (shared_weights.h) out of a serialized model
// leaves.
struct TakenWeights {
  std::string proto;  // a serialized model that refers to them at `location`
  struct Move {
    std::size_t from, to,
        size;  // in the model's bytes; `to` is 64-byte aligned and not above `from`
  };
  std::vector<Move> moves;  // done in this order none overwrites what a later one reads
};
// nullopt where nothing is large, or where `model` is no protobuf: that is for protobuf to say.
std::optional<TakenWeights> take_weights(std::string_view model, std::string_view location);

// A serialized model in pieces.
class SerializedModel {
 public:
  // `proto`: serialized with what refers to shared weights. `bytes_of`: their bytes, nullopt for a
  // tensor that stays as it is. Both have to outlive it. Internal where `proto` is no protobuf.
  static Result<SerializedModel> with_weights(
      std::string_view proto,
      const std::function<std::optional<std::string_view>(const onnx::TensorProto&)>& bytes_of);

  const std::vector<std::string_view>& pieces() const { return pieces_; }
  std::uint64_t size() const;

 private:
  std::vector<std::string_view> pieces_;
  std::deque<std::string> own_;  // what pieces that are not of `proto` lie in
};

}  // namespace tenonnx
