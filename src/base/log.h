// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Messages and progress. The library never prints: it hands both to a sink, which the command line
// connects to standard error (spdlog) and which is silent by default.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace tenonnx {

enum class LogLevel { kDebug, kInfo, kWarning };

using LogSink = std::function<void(LogLevel, std::string_view)>;
// Replaces the process-wide sink; an empty function silences it. Thread-safe.
void set_log_sink(LogSink sink);
void log_message(LogLevel level, std::string_view message);

template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}

// One long step of a job. Called with done in [0, total] and a short label; total 0 means that the
// length is not known. May be empty.
using Progress = std::function<void(std::string_view step, std::int64_t done, std::int64_t total)>;

}  // namespace tenonnx
