// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <mutex>

#include "base/wording.h"
#include "command.h"
#include "standard_streams.h"

namespace tenonnx::cli {
namespace {

using Clock = std::chrono::steady_clock;

// A log gets a line a step, and of a long step (an emulator takes up to a minute an image) one as
// often as this.
constexpr double kLogSeconds = 30;

// One step of a long job, as last reported. One for the process, as standard error is.
struct ProgressState {
  std::mutex mutex;
  std::string step;
  Clock::time_point started;
  Clock::time_point drawn;  // on a terminal; in a log the last line
  bool line_open = false;
};

ProgressState& progress_state() {
  static ProgressState state;
  return state;
}

// A step whose length is not known leaves its line open on a terminal.
void close_progress_line() {
  ProgressState& state = progress_state();
  const std::lock_guard lock(state.mutex);
  if (state.line_open) std::fputc('\n', stderr);
  state.line_open = false;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// "12/200, 3.1 s, about 40 s left"
std::string describe_progress(std::int64_t done, std::int64_t total, double seconds) {
  if (total <= 0) return fmt::format("{:.1f} s", seconds);
  std::string text = fmt::format("{}/{}, {:.1f} s", done, total, seconds);
  // Below two seconds an estimate is noise.
  if (done > 0 && done < total && seconds > 2)
    text += fmt::format(", about {:.0f} s left",
                        seconds / static_cast<double>(done) * static_cast<double>(total - done));
  return text;
}

}  // namespace

int refuse(std::string_view message) {
  fmt::print(stderr, "{}\n", wrapped(fmt::format("tenonnx: error: {}", message)));
  return kExitBadInput;
}

int fail(const Status& status) {
  close_progress_line();
  return refuse(status.message());
}

int exit_code_of(std::string_view verdict) {
  if (verdict == "PASS") return kExitPassed;
  if (verdict == "FAIL") return kExitFailedGate;
  return kExitInconclusive;
}

void print_result(const Globals& globals, const Json& json, const std::string& text) {
  close_progress_line();
  const std::string out = globals.json ? dump_json(json) : wrapped(text);
  std::fwrite(out.data(), 1, out.size(), results());
  if (out.empty() || out.back() != '\n') std::fputc('\n', results());
  std::fflush(results());
}

Progress make_progress(const Globals& globals) {
  if (globals.quiet) return {};
  const bool terminal = isatty(STDERR_FILENO) != 0;
  ProgressState* state = &progress_state();
  return [state, terminal](std::string_view step, std::int64_t done, std::int64_t total) {
    const std::lock_guard lock(state->mutex);
    if (state->step != step) {
      if (state->line_open) std::fputc('\n', stderr);
      state->line_open = false;
      state->step = step;
      state->started = Clock::now();
      state->drawn = terminal ? Clock::time_point() : state->started;
    }
    const bool finished = total > 0 && done >= total;
    const double seconds = seconds_since(state->started);
    if (terminal) {
      // Ten redraws a second are enough for an eye.
      if (!finished && seconds_since(state->drawn) < 0.1) return;
      fmt::print(stderr, "\r\033[K  {} ({})", step, describe_progress(done, total, seconds));
      if (finished) std::fputc('\n', stderr);
      state->line_open = !finished;
      state->drawn = Clock::now();
    } else if (finished || (done > 0 && seconds_since(state->drawn) >= kLogSeconds)) {
      fmt::print(stderr, "  {} ({})\n", step, describe_progress(done, total, seconds));
      state->drawn = Clock::now();
    }
    if (finished) state->step.clear();
    std::fflush(stderr);
  };
}

}  // namespace tenonnx::cli
