// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/wording.h"
#include "bench/bench.h"

namespace tenonnx {
namespace {

constexpr const char* kForwardScope =
    "the model's input tensors in memory to its output tensors; no preprocessing, no decoding";
constexpr const char* kEndToEndScope =
    "RGB pixels in memory to detections: pre_process, infer, post_process; reading and decoding an "
    "image file is not inside";
constexpr const char* kCopyScope =
    "one copy of the boundary's tensors in host memory; the segments hand them over without one, "
    "so "
    "it is not inside the forward time";

// The stage that runs the segments.
constexpr std::string_view kInfer = "infer";

Json stages_json(const std::vector<StageTiming>& stages, bool emulated = false) {
  Json list = Json::array();
  for (const StageTiming& stage : stages) {
    Json json;
    json["name"] = stage.name;
    json["latency"] = emulated && stage.name == kInfer ? Json() : to_json(stage.latency);
    list.push_back(std::move(json));
  }
  return list;
}

// Nothing where an emulator is inside.
Json figure(bool emulated, Json value) { return emulated ? Json() : value; }

Json forward_json(const BenchResult& result) {
  Json json;
  json["scope"] = kForwardScope;
  const bool emulated = result.emulated();
  json["first_run"] = figure(emulated, json_number(result.first_forward_ms));
  json["latency"] = figure(emulated, to_json(result.forward));
  json["segments"] = Json::array();
  for (const SegmentTiming& segment : result.segments) {
    Json entry;
    entry["name"] = segment.name;
    entry["executor"] = segment.executor;
    entry["description"] = segment.description;
    entry["emulated"] = segment.emulated;
    entry["session"] = figure(segment.emulated, json_number(segment.session_ms));
    entry["latency"] = figure(segment.emulated, to_json(segment.latency));
    json["segments"].push_back(std::move(entry));
  }
  json["boundaries"] = Json::array();
  for (const BoundaryTiming& boundary : result.boundaries) {
    Json entry;
    entry["from"] = boundary.from;
    entry["to"] = boundary.to;
    entry["tensors"] = boundary.tensors;
    entry["bytes"] = boundary.bytes;
    entry["scope"] = kCopyScope;
    entry["copy"] = to_json(boundary.copy);
    json["boundaries"].push_back(std::move(entry));
  }
  return json;
}

// Microseconds matter below ten milliseconds, and above it five digits are more than a clock gives.
std::string milliseconds(double value) {
  return fmt::format("{:.{}f}", value, value < 10 ? 3 : value < 100 ? 2 : value < 1000 ? 1 : 0);
}

// "12.35 [12.30, 12.40]"
std::string cell(const ConfidenceInterval& interval) {
  return fmt::format("{} [{}, {}]", milliseconds(interval.estimate), milliseconds(interval.low),
                     milliseconds(interval.high));
}

// One line of the table; the last column is empty below 500 runs.
void add_line(std::string& text, std::string_view name, std::string_view min, std::string_view p50,
              std::string_view p95, std::string_view p99) {
  std::string line = fmt::format("{:<27} {:>6}  {:<20}  {:<20}  {}", name, min, p50, p95, p99);
  line.erase(line.find_last_not_of(' ') + 1);
  text += line + "\n";
}

void add_row(std::string& text, const std::string& name, const LatencySummary& summary) {
  add_line(text, name, milliseconds(summary.min), cell(summary.p50), cell(summary.p95),
           summary.p99 ? cell(*summary.p99) : "");
}

std::string joined(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

bool BenchResult::emulated() const {
  return std::any_of(segments.begin(), segments.end(),
                     [](const SegmentTiming& segment) { return segment.emulated; });
}

Json to_json(const BenchResult& result) {
  Json json;
  json["schema_version"] = kBenchSchemaVersion;
  json["unit"] = "ms";
  json["package"] = result.package;
  json["target"] = result.target;
  json["verdict"] = result.verdict;
  Json settings;
  settings["warm_up"] = result.warm_up;
  settings["runs"] = result.runs;
  settings["intra_op_threads"] = result.scheduling.intra_op_threads;
  settings["inter_op_threads"] = result.scheduling.inter_op_threads;
  settings["spinning"] = result.scheduling.spinning;
  settings["image"] = result.image;
  settings["interval_level"] = result.forward.p50.options.level;
  settings["interval_method"] =
      fmt::format("percentile bootstrap, {} resamples, seed {}",
                  result.forward.p50.options.resamples, result.forward.p50.options.seed);
  json["settings"] = std::move(settings);
  Json machine = Json::object();
  for (const auto& [name, value] : result.facts) machine[name] = value;
  json["machine"] = std::move(machine);
  json["package_check"] = json_number(result.package_check_ms);
  json["forward"] = forward_json(result);
  Json end_to_end;
  end_to_end["scope"] = kEndToEndScope;
  const bool emulated = result.emulated();
  end_to_end["init"] = figure(emulated, json_number(result.pipeline_init_ms));
  end_to_end["first_run"] = figure(emulated, json_number(result.first_end_to_end_ms));
  end_to_end["latency"] = figure(emulated, to_json(result.end_to_end));
  end_to_end["stages"] = stages_json(result.stages, emulated);
  json["end_to_end"] = std::move(end_to_end);
  json["outside"] = stages_json(result.image_file_reading);
  json["notes"] = result.notes;
  return json;
}

std::string to_text(const BenchResult& result) {
  std::string text = fmt::format(
      "{} (target {}, verdict {})\n{} after a first run and {}, image {}\n"
      "onnxruntime {}, {}, {}, spinning {}, governor {}, load average {}\n\n",
      result.package, result.target, result.verdict, counted(result.runs, "run"),
      counted(result.warm_up, "warm-up run"), result.image, fact_of(result.facts, "onnxruntime"),
      fact_of(result.facts, "cpu"),
      result.scheduling.intra_op_threads == 0
          ? "default intra-op threads"
          : counted(result.scheduling.intra_op_threads, "intra-op thread"),
      result.scheduling.spinning ? "on" : "off", fact_of(result.facts, "governor"),
      fact_of(result.facts, "load average"));
  const int percent = static_cast<int>(std::lround(result.forward.p50.options.level * 100));
  const auto heading = [percent](const char* name) {
    return fmt::format("{} [{} %]", name, percent);
  };
  add_line(text, "milliseconds", "min", heading("P50"), heading("P95"),
           result.forward.p99 ? heading("P99") : "");
  const bool emulated = result.emulated();
  const auto add_emulated = [&](const std::string& name) {
    text += fmt::format("{:<27} no figure: emulated\n", name);
  };
  if (emulated)
    add_emulated("forward");
  else
    add_row(text, "forward", result.forward);
  for (const SegmentTiming& segment : result.segments) {
    const std::string name = fmt::format("  {} on {}", segment.name, segment.executor);
    if (segment.emulated)
      add_emulated(name);
    else
      add_row(text, name, segment.latency);
  }
  for (const BoundaryTiming& boundary : result.boundaries) {
    add_row(text, fmt::format("  copy {} -> {} *", boundary.from, boundary.to), boundary.copy);
  }
  if (emulated)
    add_emulated("end to end");
  else
    add_row(text, "end to end", result.end_to_end);
  for (const StageTiming& stage : result.stages) {
    if (emulated && stage.name == kInfer)
      add_emulated("  " + stage.name);
    else
      add_row(text, "  " + stage.name, stage.latency);
  }
  for (const StageTiming& stage : result.image_file_reading)
    add_row(text, stage.name + " *", stage.latency);
  text += fmt::format("\nstart-up: package check {:.1f}", result.package_check_ms);
  for (const SegmentTiming& segment : result.segments)
    if (!segment.emulated)
      text += fmt::format(", session {} {:.1f}", segment.name, segment.session_ms);
  if (!emulated)
    text +=
        fmt::format(", first forward {:.1f}; pipeline init {:.1f}, first image {:.1f}",
                    result.first_forward_ms, result.pipeline_init_ms, result.first_end_to_end_ms);
  text += "\n";
  for (const BoundaryTiming& boundary : result.boundaries) {
    text += fmt::format("boundary {} -> {}: {} in {} ({})\n", boundary.from, boundary.to,
                        counted(boundary.bytes, "byte"), counted(boundary.tensors.size(), "tensor"),
                        joined(boundary.tensors));
  }
  text += fmt::format("\nforward: {}\nend to end: {}\n* not inside either: {}\n", kForwardScope,
                      kEndToEndScope, kCopyScope);
  text += fmt::format("[{} %]: confidence interval of the percentile\n", percent);
  if (!result.notes.empty()) text += "\n";
  for (const std::string& note : result.notes) text += fmt::format("note: {}\n", note);
  return text;
}

}  // namespace tenonnx
