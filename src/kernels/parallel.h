// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// How kernels share work: inside ONNX Runtime through its own thread pool, so that no second pool
// fights it for the processors; alone, and in tests, through whatever is handed to them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tenonnx {

class Parallel {
 public:
  virtual ~Parallel() = default;
  // Calls task(data, i) once for each i in [0, count), from any thread, and returns when all are
  // done. Tasks share nothing that they write.
  virtual void run(std::size_t count, void (*task)(void*, std::size_t), void* data) const = 0;
};

class Serial final : public Parallel {
 public:
  void run(std::size_t count, void (*task)(void*, std::size_t), void* data) const override {
    for (std::size_t i = 0; i < count; ++i) task(data, i);
  }
};

// Cuts [0, total) into pieces of at least `least` and calls body(begin, end) for each. A piece is
// handed over in about 2 us; 16 pieces leave the last of several threads little to wait for.
template <typename Body>
void for_ranges(const Parallel& parallel, std::int64_t total, std::int64_t least, Body&& body) {
  if (total <= 0) return;
  constexpr std::int64_t kMostPieces = 16;
  const std::int64_t pieces =
      std::clamp<std::int64_t>(total / std::max<std::int64_t>(least, 1), 1, kMostPieces);
  if (pieces == 1) {
    body(std::int64_t{0}, total);
    return;
  }
  struct Job {
    std::remove_reference_t<Body>* body;
    std::int64_t total, pieces;
  } job{&body, total, pieces};
  parallel.run(
      static_cast<std::size_t>(pieces),
      [](void* data, std::size_t piece) {
        const Job& j = *static_cast<const Job*>(data);
        const auto p = static_cast<std::int64_t>(piece);
        (*j.body)(j.total * p / j.pieces, j.total * (p + 1) / j.pieces);
      },
      &job);
}

}  // namespace tenonnx
