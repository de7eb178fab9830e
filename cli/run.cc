// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <fmt/format.h>

#include <charconv>
#include <iostream>
#include <memory>

#include "base/wording.h"
#include "command.h"
#include "options.h"
#include "pipeline/run_images.h"

namespace tenonnx::cli {
namespace {

// "640x480" to width and height.
void parse_size(const std::string& text, RunOptions& options) {
  const char* end = text.data() + text.size();
  const auto width = std::from_chars(text.data(), end, options.frame_width);
  bool ok = width.ec == std::errc() && width.ptr != end && *width.ptr == 'x';
  if (ok) {
    const auto height = std::from_chars(width.ptr + 1, end, options.frame_height);
    ok = height.ec == std::errc() && height.ptr == end;
  }
  if (!ok || options.frame_width <= 0 || options.frame_height <= 0)
    throw CLI::ValidationError("--size", "'" + text + "' is not WIDTHxHEIGHT, as 640x480");
}

const std::map<std::string, ImageFormat>& pixel_formats() {
  static const std::map<std::string, ImageFormat> formats = {
      {"rgb", ImageFormat::kRgb8},   {"bgr", ImageFormat::kBgr8},   {"gray", ImageFormat::kGray8},
      {"rgba", ImageFormat::kRgba8}, {"bgra", ImageFormat::kBgra8}, {"nv12", ImageFormat::kNv12}};
  return formats;
}

// Images of which a terminal shows every detection; of more, their count (detections.json has all).
constexpr std::size_t kListedImages = 5;

std::string describe(const RunResult& result) {
  std::string text;
  std::size_t total = 0;
  for (const ImageDetections& image : result.images) {
    total += image.detections.size();
    text += fmt::format("{}: {}x{}, {}\n", image.name, image.width, image.height,
                        counted(image.detections.size(), "detection"));
    if (result.images.size() > kListedImages) continue;
    for (const Detection& d : image.detections) {
      const auto label = static_cast<std::size_t>(d.label);
      const bool named = d.label >= 0 && label < result.classes.size();
      text += fmt::format("  {:<16} {:.3f}  [{:.1f}, {:.1f}, {:.1f}, {:.1f}]\n",
                          named ? result.classes[label] : fmt::format("class {}", d.label), d.score,
                          d.box.x0, d.box.y0, d.box.x1, d.box.y1);
    }
  }
  text += fmt::format("{}, {} with a score above {}\n", counted(result.images.size(), "image"),
                      counted(total, "detection"), result.score_threshold);
  text += fmt::format("detections    {}\nCOCO results  {} (image ids: {})\n",
                      result.detections_file.string(), result.coco_file.string(), result.image_ids);
  if (!result.drawn_directory.empty())
    text += fmt::format("drawn images  {}\n", result.drawn_directory.string());
  return text;
}

}  // namespace

RunCommand setup_run(CLI::App& app, const Globals& globals) {
  auto options = std::make_shared<RunOptions>();
  auto no_draw = std::make_shared<bool>(false);
  app.add_option("package", options->package, "A directory that 'tenonnx deploy' wrote")
      ->required();
  app.add_option("images", options->images,
                 "Image files (JPEG, PNG, PPM) and directories of them; '-' reads raw frames from "
                 "standard input")
      ->required();
  app.add_option("-o,--out", options->out, "Directory for detections and drawn images")->required();
  app.add_option("--score", options->score_threshold, "Keep detections whose score is above this")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_flag("--no-draw", *no_draw, "Do not draw the images");
  app.add_option_function<std::string>(
         "--size", [options](const std::string& text) { parse_size(text, *options); },
         "Of raw frames: WIDTHxHEIGHT")
      ->type_name("WxH");
  app.add_option_function<std::string>(
         "--pixel-format",
         [options](const std::string& text) {
           const auto found = pixel_formats().find(text);
           if (found == pixel_formats().end())
             throw CLI::ValidationError(
                 "--pixel-format", "'" + text + "' is none of rgb, bgr, gray, rgba, bgra, nv12");
           options->frame_format = found->second;
         },
         "Of raw frames: rgb, bgr, gray, rgba, bgra, nv12")
      ->type_name("FORMAT");
  app.add_flag("--force", options->allow_failed_package, "Run a package whose verdict is FAIL");
  app.add_flag_callback(
      "--allow-version-mismatch", [options] { options->check_versions = false; },
      "Run with versions of runtime or device files other than those that the manifest names");
  add_scheduling_options(app, options->scheduling);
  return [&globals, options, no_draw] {
    options->draw = !*no_draw;
    options->stream = &std::cin;
    options->progress = make_progress(globals);
    const Result<RunResult> result = run_images(*options);
    if (!result.ok()) return fail(result.status());
    // With nothing but failures there is no result to show; JSON names the failures as well.
    if (globals.json || !result->images.empty())
      print_result(globals, to_json(*result), describe(*result));
    for (const RunFailure& failure : result->failures) refuse(failure.message);
    return static_cast<int>(result->failures.empty() ? kExitPassed : kExitBadInput);
  };
}

}  // namespace tenonnx::cli
