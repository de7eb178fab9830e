// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/log.h"

#include <memory>
#include <mutex>

namespace tenonnx {
namespace {

struct Holder {
  std::mutex mutex;
  std::shared_ptr<const LogSink> sink;
};

Holder& holder() {
  // Never destroyed: a thread may still log while static objects go.
  static Holder* const h = new Holder;
  return *h;
}

}  // namespace

void set_log_sink(LogSink sink) {
  auto next = sink ? std::make_shared<const LogSink>(std::move(sink)) : nullptr;
  const std::lock_guard lock(holder().mutex);
  holder().sink = std::move(next);
}

void log_message(LogLevel level, std::string_view message) {
  std::shared_ptr<const LogSink> sink;
  {
    const std::lock_guard lock(holder().mutex);
    sink = holder().sink;
  }
  // Called outside the lock, so that a sink may itself log or replace the sink.
  if (sink) (*sink)(level, message);
}

}  // namespace tenonnx
