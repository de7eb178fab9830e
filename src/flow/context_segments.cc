// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/context_segments.h"

#include <algorithm>
#include <chrono>

#include "adapters/context.h"
#include "adapters/process.h"
#include "base/files.h"
#include "base/status.h"
#include "base/temporary_directory.h"
#include "flow/placement_checks.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kSuffix = "_ctx.onnx";
constexpr std::chrono::minutes kTimeLimit{30};  // a 640 px detector takes the emulator a minute
constexpr std::size_t kTail = 1200;             // of a log, in a check

Check reload(const fs::path& package, const Segment& segment, const fs::path& program) {
  const std::string name = "context of " + segment.name + " in a fresh process";
  const TemporaryDirectory work;
  if (work.path().empty()) return failed_check(name, "no temporary directory can be made");
  const fs::path log = work.path() / "log";
  const auto end = run_process(
      {program.string(), "placement", (package / segment.file).string(), "--on", segment.executor},
      log, kTimeLimit);
  if (!end.ok()) return failed_check(name, end.status().message());
  if (!end->timed_out && end->exit_code == 0) return passed_check(name);
  const auto text = read_file(log);
  std::string tail = text.ok() ? *text : "";
  if (tail.size() > kTail) tail = "..." + tail.substr(tail.size() - kTail);
  return failed_check(name, fmt::format("{}: {}", end->text(), tail));
}

}  // namespace

bool ships_context(std::string_view address) { return address.starts_with("qnn:"); }

std::string context_file(std::string_view segment) { return fmt::format("{}{}", segment, kSuffix); }

bool is_context(const Segment& segment) { return segment.file.ends_with(kSuffix); }

bool any_context(const std::vector<Segment>& segments) {
  return std::any_of(segments.begin(), segments.end(), is_context);
}

Status compile_segment(const Segment& segment, const Model& model, const fs::path& directory,
                       const LoadOptions& options) {
  LoadOptions load = options;
  load.disable_fallback = true;
  load.profile = load.reuse_results = false;
  const fs::path out = directory / segment.file;
  TENONNX_RETURN_IF_ERROR(compile_context_for(segment.executor, model, out, true, load));
  TENONNX_ASSIGN_OR_RETURN(const Model compiled, Model::load(out));
  if (count_contexts(compiled) == 0)
    return Unsupported("'{}' holds no compiled partition after compiling it for '{}'", segment.file,
                       segment.executor);
  return check_contexts(compiled, directory);
}

std::vector<Check> reload_contexts(const fs::path& package, const std::vector<Segment>& segments,
                                   const fs::path& program) {
  std::vector<Check> out;
  if (program.empty()) return out;
  for (const Segment& segment : segments)
    if (is_context(segment)) out.push_back(reload(package, segment, program));
  return out;
}

}  // namespace tenonnx
