// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// How long a package takes, on this machine, in the sessions that ship, and with nothing else
// alive: no reference and no second set of sessions exists while it is timed. JSON:
// docs/reference/json.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "bench/statistics.h"
#include "ort/system_info.h"
#include "tenonnx/base.h"
#include "tenonnx/pipeline.h"

namespace tenonnx {

inline constexpr int kBenchSchemaVersion = 1;

struct BenchOptions {
  int warm_up = 3;
  int runs = 20;
  SchedulingParams scheduling;
  // The image for end to end; empty: a seeded synthetic one of kSyntheticWidth x kSyntheticHeight.
  std::filesystem::path image;
  bool allow_failed_package = false;
  Progress progress;
};
inline constexpr int kSyntheticWidth = 640;
inline constexpr int kSyntheticHeight = 480;

struct SegmentTiming {
  std::string name, executor, description;
  double session_ms = 0;  // start-up: reading the file and creating the session
  LatencySummary latency;
  // By a vendor's emulator: its time, and every time that it is inside, says nothing about the
  // device's and is no figure. Neither is shown.
  bool emulated = false;
};

struct BoundaryTiming {
  std::string from, to;
  std::vector<std::string> tensors;
  std::uint64_t bytes = 0;
  LatencySummary copy;  // of one copy in host memory; not part of the forward time
};

struct StageTiming {
  std::string name;
  LatencySummary latency;
};

struct BenchResult {
  std::string package, target, verdict;
  int warm_up = 0;
  int runs = 0;
  SchedulingParams scheduling;
  // Start-up, apart from everything else.
  double package_check_ms = 0;  // manifest and every hash
  double first_forward_ms = 0;
  // Forward only: the model's input tensors in memory to its output tensors.
  LatencySummary forward;
  std::vector<SegmentTiming> segments;
  std::vector<BoundaryTiming> boundaries;
  // End to end: RGB pixels in memory to detections; decoding the file is apart.
  std::string image;  // "640x480 synthetic", or the file's name and size
  double pipeline_init_ms = 0;
  double first_end_to_end_ms = 0;
  LatencySummary end_to_end;
  std::vector<StageTiming> stages;              // pre_process, infer, post_process
  std::vector<StageTiming> image_file_reading;  // empty for a synthetic image
  Facts facts;                                  // versions and machine
  std::vector<std::string> notes;
  bool emulated() const;  // a segment is
};

// Reads the package (every hash checked), times its segments in sessions of its own, releases them,
// then times the pipeline. Errors are those of the package reader, the sessions and the pipeline.
Result<BenchResult> bench_package(const std::filesystem::path& package,
                                  const BenchOptions& options);

Json to_json(const BenchResult& result);
// For people: a table, milliseconds.
std::string to_text(const BenchResult& result);

}  // namespace tenonnx
