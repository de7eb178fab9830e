// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/grid_from_camera.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "base/npy.h"
#include "base/status.h"
#include "base/temporary_directory.h"

namespace tenonnx {
namespace {

using testing::HasSubstr;

class GridFromCamera : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(directory_.path() / "camera.json")
        << R"({"K": [[560,0,352],[0,560,140],[0,0,1]], "R": [[0,-1,0],[0,0,-1],[1,0,0]],
              "t": [0,1.5,0]})";
    options_.calibration = directory_.path() / "camera.json";
    options_.area = {-10, 40, 20, -20, 0, 30, 50};
    options_.image = {704, 256};
    options_.values = {44, 16};
    options_.out = directory_.path() / "grid.npz";
  }
  std::string error() { return grid_from_camera(options_).status().message(); }
  TemporaryDirectory directory_;
  GridFromCameraOptions options_;
};

TEST_F(GridFromCamera, ReportsEveryStorageAndWritesOne) {
  options_.force = true;
  for (const char* storage : {"float32", "int16", "blocks", "affine", "codebook"}) {
    options_.storage = storage;
    const auto report = grid_from_camera(options_);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->behind, 30 * 10);  // x = -9.5 to -0.5
    EXPECT_EQ(report->behind + report->beside + report->inside, 30 * 50);
    ASSERT_EQ(report->storages.size(), 5U);
    const auto arrays = read_npz(options_.out);
    ASSERT_TRUE(arrays.ok()) << arrays.status().message();
    std::size_t bytes = 0;
    for (const auto& [name, array] : *arrays) bytes += array.bytes();
    for (const StoredGrid& s : report->storages) {
      if (s.storage == storage) {
        EXPECT_EQ(s.bytes, static_cast<std::int64_t>(bytes)) << storage;
      }
    }
    EXPECT_THAT(describe(*report), HasSubstr(storage));
  }
}

TEST_F(GridFromCamera, TheBudgetIsEachCameras) {
  std::ofstream(options_.calibration) << R"({"cameras": [{"K": [[560,0,352],[0,560,140],[0,0,1]],
            "R": [[0,-1,0],[0,0,-1],[1,0,0]], "t": [0,1.5,0]},
            {"K": [[560,0,352],[0,560,140],[0,0,1]],
            "R": [[0,1,0],[0,0,-1],[-1,0,0]], "t": [0,1.5,0]}]})";
  options_.budget = 700;
  const auto report = grid_from_camera(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->cameras, 2);
  for (const StoredGrid& s : report->storages) {
    if (s.storage == "affine") {
      EXPECT_LE(s.bytes, 1400);
      EXPECT_GT(s.bytes, 700);
    }
  }
}

TEST_F(GridFromCamera, ABudgetThatIsTooSmallIsAnErrorOfItsStorage) {
  for (const char* storage : {"affine", "codebook"}) {
    SCOPED_TRACE(storage);
    options_.storage = storage;
    options_.budget = 1;
    const std::string message = error();
    EXPECT_THAT(message, HasSubstr(fmt::format("storage '{}' takes at least ", storage)));
    EXPECT_THAT(message,
                HasSubstr("for 30 rows x 50 columns, and the budget is 1: give --budget "));
    EXPECT_FALSE(std::filesystem::exists(options_.out));
    // What it says is the least.
    options_.budget = std::stoll(message.substr(message.find("least ") + 6));
    options_.out.clear();
    EXPECT_EQ(error(), "");
    --options_.budget;
    EXPECT_EQ(error(), message.substr(0, message.find("is 1:")) +
                           fmt::format("is {}:", options_.budget) +
                           message.substr(message.find("is 1:") + 5));
    options_.out = directory_.path() / "grid.npz";
  }
  // Another storage is written; the table says which do not fit.
  options_.storage = "int16";
  const auto report = grid_from_camera(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_TRUE(std::filesystem::exists(options_.out));
  EXPECT_THAT(report->over_budget, testing::Contains("codebook"));
  EXPECT_THAT(describe(*report), HasSubstr("codebook (the least bytes)"));
  EXPECT_FALSE(to_json(*report)["storages"][4]["within_budget"].get<bool>());
  EXPECT_FALSE(to_json(*report)["storages"][1].contains("within_budget"));
  options_.budget = std::numeric_limits<std::int64_t>::max();
  options_.force = true;
  EXPECT_EQ(error(), "");
}

TEST_F(GridFromCamera, AFileIsReplacedWithForceOnly) {
  std::ofstream(options_.out) << "no grid";
  EXPECT_EQ(error(), fmt::format("'{}' exists: --force replaces it", options_.out.string()));
  EXPECT_FALSE(read_npz(options_.out).ok());
  options_.force = true;
  EXPECT_EQ(error(), "");
  EXPECT_TRUE(read_npz(options_.out).ok());
  options_.calibration = options_.out;
  EXPECT_THAT(error(), HasSubstr("is the calibration itself"));
  options_.out = directory_.path() / "folder.npz";
  std::filesystem::create_directory(options_.out);
  EXPECT_THAT(error(), HasSubstr("is a directory: name a file in it"));
}

TEST_F(GridFromCamera, AGridThatSamplesNothingIsRefused) {
  options_.area = {-40, -10, 20, -20, 0, 30, 50};  // behind the camera
  EXPECT_THAT(error(),
              HasSubstr("would sample nothing: of 1500 points 1500 are behind the camera"));
  EXPECT_FALSE(std::filesystem::exists(options_.out));
  options_.border = true;
  EXPECT_THAT(error(), HasSubstr("would sample nothing"));
  options_.area = {10, 40, 200, 160, 0, 30, 50};  // far to the left of it
  EXPECT_THAT(error(), HasSubstr("0 are behind the camera and 1500 beside its image"));
}

TEST_F(GridFromCamera, ACameraThatSeesNothingIsNamed) {
  std::ofstream(options_.calibration) << R"({"cameras": [{"K": [[560,0,352],[0,560,140],[0,0,1]],
            "R": [[0,-1,0],[0,0,-1],[1,0,0]], "t": [0,1.5,0]},
            {"K": [[560,0,352],[0,560,140],[0,0,1]],
            "R": [[0,1,0],[0,0,-1],[-1,0,0]], "t": [0,1.5,0]}]})";
  options_.area.x_min = 5;
  const auto report = grid_from_camera(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->blind, (std::vector<std::int64_t>{1}));
  EXPECT_THAT(describe(*report), HasSubstr("warning: camera 1 sees nothing of the area"));
}

TEST_F(GridFromCamera, RefusesWhatCannotBe) {
  options_.storage = "int4";
  EXPECT_THAT(error(), HasSubstr("'int4' is none of float32, int16, blocks, affine, codebook"));
  options_.storage = "affine";
  options_.out = directory_.path() / "grid.npy";
  EXPECT_THAT(error(), HasSubstr("has to end in .npz: storage 'affine' has several arrays"));
  options_.storage = "float32";
  EXPECT_EQ(error(), "");
  EXPECT_TRUE(read_npy(options_.out).ok());
  options_.budget = 0;
  EXPECT_THAT(error(), HasSubstr("the budget is 0 bytes"));
  options_.budget = 1;
  options_.values.width = 0;
  EXPECT_THAT(error(), HasSubstr("the values are 0 x 16 pixels"));
}

}  // namespace
}  // namespace tenonnx
