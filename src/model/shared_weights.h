// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Large initializers lie once in memory, outside of the protobuf, and every clone of a model refers
// to them: a graph of 80 MB of weights is copied, checked and handed to ONNX Runtime as the 2 MB
// that its nodes take. In the proto such a tensor looks like one with external data, whose location
// no file has. None of that is written: what is saved or serialized holds the values, byte for byte
// where protobuf puts them (serialized_weights.h).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "tenonnx/base.h"

namespace onnx {
class TensorProto;
}

namespace tenonnx {

// Smaller ones are worth no reference, and passes read their values in the proto (shape inference
// those of up to 4096 bytes).
inline constexpr std::size_t kSharedBytes = std::size_t{16} << 10;

// Never changed once it is shared.
struct SharedBytes {
  std::string_view bytes;
  std::shared_ptr<const void> owner;
};

// Another one at each call in the whole process, so that the blocks of two models never take each
// other's place. An absolute path, which no model may name (resolve_inside()).
std::string next_shared_location();
bool is_shared(const onnx::TensorProto& tensor);

// Memory of its own, zeroed, all of which goes back with the last reference. Not in large pages:
// where the machine is a guest they come from its host, and 80 MB took 0.22 s to read in place of
// 0.05.
class Pages {
 public:
  explicit Pages(std::size_t size);  // bad_alloc
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  char* data() const { return data_; }
  std::string_view bytes() const { return {data_, size_}; }

 private:
  char* data_;
  std::size_t size_;
};

}  // namespace tenonnx
