// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Memory that a kernel needs while it runs: kept by the thread from call to call, so that nothing
// is allocated after the first.
#pragma once

#include <hwy/aligned_allocator.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace tenonnx {

class Scratch {
 public:
  // At least `bytes`, aligned to a cache line; the content is undefined. What an earlier get()
  // gave is invalid then. Throws std::runtime_error where there is no memory.
  void* get(std::size_t bytes) {
    if (bytes > capacity_) {
      capacity_ = 0;
      memory_ = hwy::AllocateAligned<std::uint8_t>(bytes);
      if (memory_ == nullptr)
        throw std::runtime_error("tenonnx: no memory for " + std::to_string(bytes) +
                                 " bytes that a sampling operator works in");
      capacity_ = bytes;
    }
    return memory_.get();
  }
  template <typename T>
  T* get(std::size_t count) {
    return static_cast<T*>(get(count * sizeof(T)));
  }

 private:
  hwy::AlignedFreeUniquePtr<std::uint8_t[]> memory_;
  std::size_t capacity_ = 0;
};

}  // namespace tenonnx
