// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/shared_weights.h"

#include <onnx/onnx_pb.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <new>

#include "model/tensor_proto.h"

namespace tenonnx {
namespace {

constexpr std::string_view kShared = "/tenonnx/shared/";

}  // namespace

std::string next_shared_location() {
  static std::atomic<std::uint64_t> next = 0;
  return std::string(kShared) + std::to_string(++next);
}

bool is_shared(const onnx::TensorProto& tensor) {
  return is_external(tensor) &&
         std::any_of(tensor.external_data().begin(), tensor.external_data().end(),
                     [](const onnx::StringStringEntryProto& entry) {
                       return entry.key() == "location" && entry.value().starts_with(kShared);
                     });
}

Pages::Pages(std::size_t size) : data_(nullptr), size_(size) {
  if (size == 0) return;
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<char*>(memory);
}

Pages::~Pages() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace tenonnx
