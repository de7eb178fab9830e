// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What `grid-from-camera` does: a constant sampling grid from a calibration, its cost in every
// storage, and the file of one of them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "camera/grid_storage.h"
#include "camera/ground_grid.h"
#include "tenonnx/base.h"

namespace tenonnx {

struct GridFromCameraOptions {
  std::filesystem::path calibration;
  GroundArea area;
  ImageSize image;   // that K counts pixels of
  ImageSize values;  // the tensor that is sampled, [N,C,height,width]
  bool pixel_centres = false;
  bool border = false;         // padding_mode of the GridSample; zeros otherwise
  bool align_corners = false;  // of the GridSample; the grid is the same
  std::string storage = "float32";
  std::int64_t budget = 18 * 1024;  // bytes a camera for affine and codebook
  std::filesystem::path out;        // .npz; float32 also .npy. Empty: nothing is written
  bool force = false;               // replace the file that stands there
};

struct GridFromCameraReport {
  std::int64_t cameras = 0, rows = 0, columns = 0;
  std::int64_t behind = 0, beside = 0, inside = 0;  // points; see GroundGrid
  std::int64_t sampled = 0;                         // points that sample something
  std::vector<std::int64_t> blind;                  // cameras of which no point does, from 0
  std::string storage;                              // that was written
  std::filesystem::path out;
  std::vector<StoredGrid> storages;      // without their arrays
  std::int64_t budget = 0;               // bytes a camera
  std::vector<std::string> over_budget;  // storages whose least bytes are more than that
};

// Before anything is computed, InvalidArgument for options that cannot be right and
// FailedPrecondition where `out` exists (without force); before anything is written,
// InvalidArgument for a grid that samples nothing or a storage that the budget does not hold.
Result<GridFromCameraReport> grid_from_camera(const GridFromCameraOptions& options);

Json to_json(const GridFromCameraReport& report);
std::string describe(const GridFromCameraReport& report);

}  // namespace tenonnx
