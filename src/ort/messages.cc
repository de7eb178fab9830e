// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/messages.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace tenonnx {
namespace {

// Never destroyed: a runtime may log while the process ends.
std::mutex& mutex() {
  static auto* one = new std::mutex;
  return *one;
}
std::vector<RuntimeMessages*>& listeners() {
  static auto* list = new std::vector<RuntimeMessages*>;
  return *list;
}

}  // namespace

RuntimeMessages::RuntimeMessages() {
  const std::lock_guard lock(mutex());
  listeners().push_back(this);
}

RuntimeMessages::~RuntimeMessages() {
  const std::lock_guard lock(mutex());
  std::erase(listeners(), this);
}

std::vector<std::string> RuntimeMessages::take() {
  const std::lock_guard lock(mutex());
  return std::exchange(messages_, {});
}

void deliver_runtime_message(std::string_view message) {
  const std::lock_guard lock(mutex());
  for (RuntimeMessages* listener : listeners())
    if (listener->messages_.size() < RuntimeMessages::kMost)
      listener->messages_.emplace_back(message);
}

}  // namespace tenonnx
