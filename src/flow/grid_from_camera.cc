// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/grid_from_camera.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/npy.h"
#include "base/status.h"
#include "base/wording.h"
#include "flow/staged_files.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStorages[] = {"float32", "int16", "blocks", "affine", "codebook"};

Status check_out(const GridFromCameraOptions& options) {
  std::error_code error;
  const fs::path& out = options.out;
  const std::string extension = out.extension().string();
  if (extension != ".npz" && !(extension == ".npy" && options.storage == "float32"))
    return InvalidArgument("'{}' has to end in .npz{}: storage '{}' has {}", out.string(),
                           options.storage == "float32" ? " or .npy" : "", options.storage,
                           options.storage == "float32" ? "one array" : "several arrays");
  if (fs::equivalent(options.calibration, out, error))
    return InvalidArgument("the output '{}' is the calibration itself: name another file",
                           out.string());
  return check_output_file(out, options.force);
}

Status check(const GridFromCameraOptions& options) {
  if (std::find(std::begin(kStorages), std::end(kStorages), options.storage) == std::end(kStorages))
    return InvalidArgument("storage '{}' is none of {}", options.storage,
                           fmt::join(kStorages, ", "));
  constexpr std::int64_t kMost = 1 << 14;
  const ImageSize& v = options.values;
  if (v.width < 1 || v.height < 1 || v.width > kMost || v.height > kMost)
    return InvalidArgument("the values are {} x {} pixels, 1 to {} of each are possible", v.width,
                           v.height, kMost);
  if (options.budget < 1)
    return InvalidArgument("the budget is {} bytes, at least 1 is needed", options.budget);
  return options.out.empty() ? Status() : check_out(options);
}

bool has_budget(std::string_view storage) { return storage == "affine" || storage == "codebook"; }

// Of all cameras; a budget that no grid fills stays one.
std::int64_t whole_budget(std::int64_t budget, std::int64_t cameras) {
  return std::min(budget, std::numeric_limits<std::int64_t>::max() / cameras) * cameras;
}

Status beyond_budget(const StoredGrid& stored, const GridFromCameraReport& report) {
  const std::int64_t each = (stored.bytes + report.cameras - 1) / report.cameras;
  return InvalidArgument(
      "storage '{}' takes at least {} bytes{} for {} rows x {} columns, and the budget is {}: give "
      "--budget {} or more, fewer cells (--cells), or another --storage",
      stored.storage, each, report.cameras == 1 ? "" : " a camera", report.rows, report.columns,
      report.budget, each);
}

StoredGrid store(std::string_view storage, const StaticSource& source, std::int64_t budget) {
  if (storage == "float32") return store_float32(source);
  if (storage == "int16") return store_int16(source);
  if (storage == "blocks") return store_blocks(source);
  budget = whole_budget(budget, source.images);
  return storage == "affine" ? store_affine_within(source, budget)
                             : store_codebook_within(source, budget);
}

// Cameras that see nothing of the area, by number.
std::vector<std::int64_t> blind_cameras(const GridPixels& pixels, std::int64_t cameras) {
  std::vector<std::int64_t> blind;
  const auto each = static_cast<std::ptrdiff_t>(pixels.x.size()) / cameras;
  for (std::int64_t c = 0; c < cameras; ++c)
    if (std::all_of(pixels.x.begin() + c * each, pixels.x.begin() + (c + 1) * each,
                    [](double x) { return std::isnan(x); }))
      blind.push_back(c);
  return blind;
}

}  // namespace

Result<GridFromCameraReport> grid_from_camera(const GridFromCameraOptions& options) {
  TENONNX_RETURN_IF_ERROR(check(options));
  TENONNX_ASSIGN_OR_RETURN(const std::vector<Camera> cameras,
                           read_calibration(options.calibration));
  TENONNX_ASSIGN_OR_RETURN(const GroundGrid made, ground_grid(cameras, options.area, options.image,
                                                              options.pixel_centres));
  GridFromCameraReport report;
  report.cameras = std::ssize(cameras);
  report.rows = options.area.rows;
  report.columns = options.area.columns;
  report.behind = made.behind;
  report.beside = made.beside;
  report.inside = made.inside;
  report.storage = options.storage;
  report.out = options.out;
  report.budget = options.budget;
  const StaticSource source = {made.grid.data<float>(),
                               report.cameras,
                               options.values.height,
                               options.values.width,
                               options.area.rows,
                               options.area.columns,
                               options.border ? StaticPadding::kBorder : StaticPadding::kZeros,
                               options.align_corners};
  const GridPixels pixels = exact_pixels(source);
  report.sampled =
      std::count_if(pixels.x.begin(), pixels.x.end(), [](double x) { return !std::isnan(x); });
  // A border is sampled by every point: it says nothing about what the camera sees.
  if ((options.border ? report.inside : report.sampled) == 0)
    return InvalidArgument(
        "the grid would sample nothing: of {} points {} are behind the camera and {} beside its "
        "image. Check that R and t take vehicle coordinates to the camera's (camera = R vehicle + "
        "t, which looks along its +z), that --x, --y and --height are metres of what lies before "
        "it, and that K counts pixels of --image {}x{}",
        report.behind + report.beside, report.behind, report.beside, options.image.width,
        options.image.height);
  report.blind = blind_cameras(pixels, report.cameras);
  for (const std::string_view storage : kStorages) {
    StoredGrid stored = store(storage, source, options.budget);
    if (has_budget(storage) && stored.bytes > whole_budget(options.budget, report.cameras)) {
      if (storage == options.storage) return beyond_budget(stored, report);
      report.over_budget.emplace_back(storage);
    }
    if (storage == options.storage && !options.out.empty())
      TENONNX_RETURN_IF_ERROR(options.out.extension() == ".npy"
                                  ? write_npy(options.out, stored.arrays.at("grid"))
                                  : write_npz(options.out, stored.arrays));
    stored.arrays.clear();
    report.storages.push_back(std::move(stored));
  }
  return report;
}

Json to_json(const GridFromCameraReport& report) {
  Json storages = Json::array();
  const auto& over = report.over_budget;
  for (const StoredGrid& s : report.storages) {
    storages.push_back({{"storage", s.storage},
                        {"bytes", s.bytes},
                        {"max_pixels", s.max_pixels},
                        {"rms_pixels", s.rms_pixels},
                        {"changed_points", s.changed}});
    if (has_budget(s.storage))
      storages.back()["within_budget"] =
          std::find(over.begin(), over.end(), s.storage) == over.end();
  }
  Json json = {{"schema_version", 1},
               {"cameras", report.cameras},
               {"rows", report.rows},
               {"columns", report.columns},
               {"points",
                {{"behind", report.behind},
                 {"beside", report.beside},
                 {"inside", report.inside},
                 {"sampled", report.sampled}}},
               {"blind_cameras", report.blind},
               {"storages", storages}};
  if (!report.out.empty())
    json["written"] = {{"storage", report.storage}, {"file", report.out.string()}};
  return json;
}

std::string describe(const GridFromCameraReport& report) {
  std::string text = fmt::format(
      "{}, {} rows x {} columns: {} points in the image, {} beside it, {} behind the camera\n"
      "(marked {}: outside); {} sample something\n\n",
      counted(report.cameras, "camera"), report.rows, report.columns, report.inside, report.beside,
      report.behind, kOutsideMark, report.sampled);
  if (!report.blind.empty())
    text.insert(text.size() - 1,
                fmt::format("warning: camera {} sees nothing of the area: its part of the grid "
                            "samples nothing\n",
                            fmt::join(report.blind, ", ")));
  text += fmt::format("  {:<9} {:>9} {:>8} {:>12} {:>12} {:>16}\n", "storage", "bytes", "KiB",
                      "max pixels", "rms pixels", "points in or out");
  for (const StoredGrid& s : report.storages)
    text += fmt::format("  {:<9} {:>9} {:>8.1f} {:>12.2g} {:>12.2g} {:>16}\n", s.storage, s.bytes,
                        static_cast<double>(s.bytes) / 1024, s.max_pixels, s.rms_pixels, s.changed);
  if (!report.over_budget.empty())
    text +=
        fmt::format("\nwarning: more than --budget {}{}: {} (the least bytes)\n", report.budget,
                    report.cameras == 1 ? "" : " a camera", fmt::join(report.over_budget, ", "));
  if (!report.out.empty())
    text += fmt::format("\nwritten: '{}' ({})\n", report.out.string(), report.storage);
  return text;
}

}  // namespace tenonnx
