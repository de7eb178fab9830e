// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/grid_from_camera.h"

#include <charconv>
#include <memory>

#include "command.h"

namespace tenonnx::cli {
namespace {

// "A<mark>B" as two numbers; CLI11 prints what is returned.
template <typename T>
std::string two_numbers(const std::string& text, char mark, T& a, T& b, const char* form) {
  std::string wrong = "'" + text + "' is not of the form " + form;
  const auto at = text.find(mark, 1);
  if (at == std::string::npos) return wrong;
  const char* const begin = text.data();
  const auto first = std::from_chars(begin, begin + at, a);
  const auto second = std::from_chars(begin + at + 1, begin + text.size(), b);
  const bool whole = first.ec == std::errc() && first.ptr == begin + at &&
                     second.ec == std::errc() && second.ptr == begin + text.size();
  return whole ? "" : wrong;
}

template <typename T>
CLI::Option* add_pair(CLI::App& app, const std::string& name, char mark, T& a, T& b,
                      const char* form, const std::string& help) {
  const auto parse = [&a, &b, mark, form](const std::string& text) {
    if (const std::string wrong = two_numbers(text, mark, a, b, form); !wrong.empty())
      throw CLI::ValidationError(wrong);
  };
  return app.add_option_function<std::string>(name, parse, help)->type_name(form);
}

}  // namespace

RunCommand setup_grid_from_camera(CLI::App& app, const Globals& globals) {
  auto options = std::make_shared<GridFromCameraOptions>();
  options->area.rows = options->area.columns = 200;
  app.add_option("calibration", options->calibration,
                 "JSON or .npz with K, R, t of one camera or of several: camera = R vehicle + t")
      ->required();
  add_pair(app, "--image", 'x', options->image.width, options->image.height, "WIDTHxHEIGHT",
           "The image whose pixels K counts")
      ->required();
  add_pair(app, "--values", 'x', options->values.width, options->values.height, "WIDTHxHEIGHT",
           "The tensor that is sampled: errors are in its pixels")
      ->required();
  add_pair(app, "--x", ':', options->area.x_min, options->area.x_max, "FROM:TO",
           "The columns' extent in metres of the vehicle's x; may fall")
      ->required();
  add_pair(app, "--y", ':', options->area.y_min, options->area.y_max, "FROM:TO",
           "The rows' extent in metres of the vehicle's y; may fall")
      ->required();
  app.add_option("--height", options->area.height, "z of the plane, metres")->capture_default_str();
  add_pair(app, "--cells", 'x', options->area.columns, options->area.rows, "COLUMNSxROWS",
           "The size of the bird's-eye view (200x200)");
  app.add_flag("--pixel-centres", options->pixel_centres,
               "K counts from the centre of the first pixel (OpenCV), not from its edge");
  app.add_flag("--border", options->border, "The GridSample pads with the border, not with zeros");
  app.add_flag("--align-corners", options->align_corners,
               "The GridSample has align_corners = 1; the grid is the same");
  app.add_option("--storage", options->storage,
                 "What to write: float32, int16, blocks, affine, codebook")
      ->capture_default_str();
  app.add_option(
         "--budget", options->budget,
         "Bytes that affine and codebook may take, for each camera; less than they can take "
         "is an error")
      ->capture_default_str();
  app.add_option("-o,--out", options->out, "The .npz to write; .npy for float32");
  app.add_flag("--force", options->force, "Replace an existing file");
  app.footer(
      "Example: tenonnx grid-from-camera calibration.json --image 704x256 --values 44x16 "
      "--x -50:50 --y 50:-50 -o grid.npz");
  return [&globals, options] {
    const auto report = grid_from_camera(*options);
    if (!report.ok()) return fail(report.status());
    print_result(globals, to_json(*report), describe(*report));
    return static_cast<int>(kExitPassed);
  };
}

}  // namespace tenonnx::cli
