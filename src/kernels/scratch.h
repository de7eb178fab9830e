// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Memory that a kernel needs while it runs: kept by the thread from call to call, so that nothing
// is allocated after the first.
#pragma once

#include <hwy/aligned_allocator.h>

#include <cstddef>
#include <cstdint>

namespace tenonnx {

class Scratch {
 public:
  // At least `bytes`, aligned to a cache line; the content is undefined. What an earlier get()
  // gave is invalid then.
  void* get(std::size_t bytes) {
    if (bytes > capacity_) {
      memory_ = hwy::AllocateAligned<std::uint8_t>(bytes);
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
