// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Damages of bytes and of protobuf fields, the same for the same seed on every machine.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace tenonnx::fuzz {

class Mutator {
 public:
  explicit Mutator(std::uint32_t seed) : random_(seed) {}

  // [0, n); 0 for n = 0. Not std::uniform_int_distribution, whose numbers differ between libraries.
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }
  template <typename T>
  const T& one_of(const std::vector<T>& items) {
    return items[below(items.size())];
  }

  // One to four of: a byte changed, a bit turned, a stretch removed, doubled or overwritten, the
  // end cut off.
  void bytes(std::string& text);
  // One to `most` damages of fields anywhere in the message: values replaced by limits, by values
  // from elsewhere in the message or by `words`; fields cleared; elements removed, doubled,
  // swapped.
  void message(google::protobuf::Message& message, const std::vector<std::string>& words,
               std::size_t most = 3);

 private:
  void damage_one(google::protobuf::Message& root, const std::vector<std::string>& words);
  void damage_field(google::protobuf::Message& message,
                    const google::protobuf::FieldDescriptor& field,
                    const std::vector<std::string>& pool);
  std::int64_t number();
  std::mt19937 random_;
};

}  // namespace tenonnx::fuzz
