// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "bench/bench.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <random>
#include <utility>

#include "adapters/qnn_options.h"
#include "base/status.h"
#include "bench/boundary.h"
#include "bench/timer.h"
#include "package/manifest.h"
#include "pipeline/chain.h"
#include "pipeline/image.h"
#include "pipeline/image_file.h"
#include "pipeline/preprocess.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;

// Noise in blocks of 8 x 8: a resize then does its full work, and no value is special.
Image synthetic_image() {
  Image image(kSyntheticWidth, kSyntheticHeight, 3);
  std::mt19937 generator(1);
  std::array<std::array<std::uint8_t, 3>, kSyntheticWidth / 8> blocks{};
  for (int y = 0; y < image.height; ++y) {
    if (y % 8 == 0) {
      for (auto& block : blocks)
        for (auto& channel : block) channel = static_cast<std::uint8_t>(generator() >> 24);
    }
    for (int x = 0; x < image.width; ++x) {
      for (int c = 0; c < 3; ++c)
        image.row(y)[x * 3 + c] =
            blocks[static_cast<std::size_t>(x / 8)][static_cast<std::size_t>(c)];
    }
  }
  return image;
}

Result<Image> image_of(const BenchOptions& options) {
  if (options.image.empty()) return synthetic_image();
  return read_image(options.image);
}

// What the machine did besides, before the first run: a figure taken under load is no figure.
std::string load_average() {
  std::ifstream in("/proc/loadavg");
  std::string text;
  in >> text;
  return text.empty() ? "not available" : text;
}

Status check_verdict(const Manifest& manifest, const BenchOptions& options) {
  if (manifest.verdict != "FAIL" || options.allow_failed_package) return {};
  return FailedPrecondition(
      "the package's verdict is FAIL: a gate of its deploy failed, so its time is that of a model "
      "that computes something else. Time it anyway with --force.");
}

// The tensors of a boundary after a run.
std::vector<Tensor> tensors_of(const Boundary& boundary, const PackageChain& chain,
                               const std::vector<Tensor>& values) {
  std::vector<Tensor> found;
  for (const std::string& name : boundary.tensors) {
    for (std::size_t i = 0; i < chain.slots().size(); ++i)
      if (chain.slots()[i].name == name) found.push_back(values[i]);
  }
  return found;
}

Status time_boundaries(const Manifest& manifest, const PackageChain& chain,
                       const std::vector<Tensor>& values, const BenchOptions& options,
                       BenchResult& result) {
  for (const Boundary& boundary : boundaries_of(manifest)) {
    BoundaryCopy crossing(tensors_of(boundary, chain, values));
    const Stage copy{"copy", [&]() -> Status {
                       crossing.copy();
                       return {};
                     }};
    TENONNX_ASSIGN_OR_RETURN(const auto timing,
                             time_stages({&copy, 1}, options.warm_up, options.runs));
    result.boundaries.push_back({manifest.segments[boundary.from].name,
                                 manifest.segments[boundary.to].name, boundary.tensors,
                                 crossing.bytes(), summarize(timing.total_ms)});
  }
  return {};
}

// `run` each time; of an emulator, whose time is no figure, once: what it gives the others stays.
std::function<Status()> once_where_emulated(bool emulated, std::function<Status()> run) {
  if (!emulated) return run;
  return [run = std::move(run), ran = false]() mutable -> Status {
    if (ran) return {};
    ran = true;
    return run();
  };
}

bool has_emulated(const Manifest& manifest) {
  return std::any_of(manifest.segments.begin(), manifest.segments.end(),
                     [](const Segment& segment) { return is_emulated(segment.executor); });
}

Status time_forward(const fs::path& package, const Manifest& manifest, const Image& image,
                    const BenchOptions& options, BenchResult& result) {
  PackageChainOptions load;
  load.load.intra_op_threads = options.scheduling.intra_op_threads;
  load.load.inter_op_threads = options.scheduling.inter_op_threads;
  load.load.spinning = options.scheduling.spinning;
  TENONNX_ASSIGN_OR_RETURN(const auto preprocessor, Preprocessor::create(manifest.contract));
  TensorMap named;
  TENONNX_RETURN_IF_ERROR(preprocessor.run(view_of(image), named));
  TENONNX_ASSIGN_OR_RETURN(const auto chain, PackageChain::load(package, manifest, load));
  std::vector<Tensor> inputs;
  for (const TensorInfo& info : chain.inputs()) inputs.push_back(named[info.name]);
  std::vector<Tensor> values;
  chain.prepare(values);
  std::vector<Stage> stages;
  for (std::size_t i = 0; i < chain.segment_count(); ++i) {
    stages.push_back({"forward", once_where_emulated(is_emulated(manifest.segments[i].executor),
                                                     [&chain, &inputs, &values, i] {
                                                       return chain.run_segment(i, inputs, values);
                                                     })});
  }
  TENONNX_ASSIGN_OR_RETURN(const auto timing, time_stages(stages, options.warm_up, options.runs,
                                                          options.progress, "forward"));
  result.first_forward_ms = timing.first_ms;
  result.forward = summarize(timing.total_ms);
  for (std::size_t i = 0; i < chain.segment_count(); ++i) {
    const Segment& segment = manifest.segments[i];
    result.segments.push_back({segment.name, segment.executor, chain.segment_description(i),
                               chain.segment_load_ms(i), summarize(timing.stage_ms[i])});
  }
  return time_boundaries(manifest, chain, values, options, result);
}

Status time_pipeline(const fs::path& package, const Manifest& manifest, const Image& image,
                     const BenchOptions& options, BenchResult& result) {
  PipelineConfig config;
  config.package = package.string();
  config.allow_failed_package = options.allow_failed_package;
  config.scheduling = options.scheduling;
  Pipeline pipeline(config);
  const Stopwatch watch;
  TENONNX_RETURN_IF_ERROR(pipeline.init());
  result.pipeline_init_ms = watch.milliseconds();
  const ImageView view = view_of(image);
  Pipeline::Tensors inputs;
  Pipeline::Tensors outputs;
  std::vector<Detection> detections;
  const std::array<Stage, 3> stages = {
      {{"pre_process", [&] { return pipeline.pre_process(view, inputs); }},
       {"infer", once_where_emulated(has_emulated(manifest),
                                     [&] { return pipeline.infer(inputs, outputs); })},
       {"post_process", [&] { return pipeline.post_process(outputs, detections); }}}};
  TENONNX_ASSIGN_OR_RETURN(const auto timing, time_stages(stages, options.warm_up, options.runs,
                                                          options.progress, "end to end"));
  result.first_end_to_end_ms = timing.first_ms;
  result.end_to_end = summarize(timing.total_ms);
  for (std::size_t i = 0; i < stages.size(); ++i)
    result.stages.push_back({stages[i].name, summarize(timing.stage_ms[i])});
  return {};
}

Status time_image_file(const BenchOptions& options, BenchResult& result) {
  if (options.image.empty()) return {};
  const Stage read{"read image", [&] { return read_image(options.image).status(); }};
  TENONNX_ASSIGN_OR_RETURN(const auto timing,
                           time_stages({&read, 1}, options.warm_up, options.runs));
  result.image_file_reading.push_back({"read and decode the file", summarize(timing.total_ms)});
  return {};
}

void add_notes(BenchResult& result) {
  result.notes.emplace_back(
      "stage medians need not add up to the median of the whole: each is the median of its own "
      "series");
  result.notes.emplace_back(
      "files were in the page cache when the sessions were created, since their hashes had been "
      "checked just before");
  for (SegmentTiming& segment : result.segments) {
    if (is_emulated(segment.executor)) {
      segment.emulated = true;
      result.notes.push_back(
          "segment '" + segment.name + "' ran on " + segment.executor +
          ", on the vendor's emulator: emulator time is not device time, so that neither its time "
          "nor "
          "a sum with it inside is shown, and it ran once for each, to feed the others; the "
          "boundary's bytes and the segments on the CPU are measured");
    }
    if (segment.executor.starts_with("sim:")) {
      result.notes.push_back("segment '" + segment.name + "' ran on " + segment.executor +
                             ": the time of a simulation on this CPU, which says nothing about the "
                             "device's");
    }
  }
  // Below a load of half the cores one process finds a free one at nearly any time.
  const double load = std::atof(fact_of(result.facts, "load average").c_str());
  const double cores = std::atof(fact_of(result.facts, "logical cores").c_str());
  if (load > cores / 2) {
    result.notes.push_back(
        fmt::format("the machine was busy with something else: load average {:.1f} on {:.0f} cores "
                    "before the first run; measure again when it is idle",
                    load, cores));
  }
  if (result.runs < 20) {
    result.notes.emplace_back("under 20 runs the P95 is hardly more than the slowest run");
  }
}

}  // namespace

Result<BenchResult> bench_package(const fs::path& package, const BenchOptions& options) {
  BenchResult result;
  result.package = package.lexically_normal().string();
  result.warm_up = options.warm_up;
  result.runs = options.runs;
  result.scheduling = options.scheduling;
  TENONNX_ASSIGN_OR_RETURN(const Image image, image_of(options));
  result.image = fmt::format(
      "{}x{} {}", image.width, image.height,
      options.image.empty() ? std::string("synthetic") : options.image.filename().string());
  result.facts = system_info();
  result.facts.emplace_back("load average", load_average());
  const Stopwatch watch;
  TENONNX_ASSIGN_OR_RETURN(const Manifest manifest, read_package(package));
  result.package_check_ms = watch.milliseconds();
  result.target = manifest.target;
  result.verdict = manifest.verdict;
  TENONNX_RETURN_IF_ERROR(check_verdict(manifest, options));
  TENONNX_RETURN_IF_ERROR(time_forward(package, manifest, image, options, result));
  TENONNX_RETURN_IF_ERROR(time_pipeline(package, manifest, image, options, result));
  TENONNX_RETURN_IF_ERROR(time_image_file(options, result));
  add_notes(result);
  return result;
}

}  // namespace tenonnx
