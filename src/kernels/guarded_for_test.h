// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Memory between two pages that may not be touched, so that one element read or written beyond
// either end ends the test, under every instruction set and without a sanitizer.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace tenonnx {

enum class Against { kEnd, kBegin };  // which end of a buffer touches a forbidden page

template <typename T>
class Guarded {
 public:
  explicit Guarded(std::size_t count, Against against = Against::kEnd) : count_(count) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t inside = (count * sizeof(T) + page - 1) / page * page;
    mapped_ = inside + 2 * page;
    void* map = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) throw std::runtime_error("mmap");
    map_ = static_cast<std::uint8_t*>(map);
    if (inside > 0 && mprotect(map_ + page, inside, PROT_READ | PROT_WRITE) != 0)
      throw std::runtime_error("mprotect");
    std::uint8_t* begin = map_ + page;
    if (against == Against::kEnd) begin += inside - count * sizeof(T);
    data_ = reinterpret_cast<T*>(begin);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { munmap(map_, mapped_); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + count_; }

 private:
  std::uint8_t* map_ = nullptr;
  T* data_ = nullptr;
  std::size_t count_ = 0, mapped_ = 0;
};

}  // namespace tenonnx
