// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "camera/ground_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <vector>

#include "base/npy.h"
#include "base/status.h"
#include "base/temporary_directory.h"
#include "kernels/grid_sample/grid_sample.h"

namespace tenonnx {
namespace {

using testing::HasSubstr;

// The vehicle's x forward, y left, z up; the camera looks along x from 1.5 m up: its x is right
// (-y), its y down (-z).
Camera forward_camera() {
  return {{400, 0, 352, 0, 400, 128, 0, 0, 1}, {0, -1, 0, 0, 0, -1, 1, 0, 0}, {0, 1.5, 0}};
}

TEST(GroundGrid, ProjectsWhatIsBeforeTheCameraAndMarksTheRest) {
  // Cells at x = -10, 10, 30 and y = 0: one behind, one at 10 m, one at 30 m.
  const auto made = ground_grid({forward_camera()}, {-20, 40, -2, 2, 0, 1, 3}, {704, 256}, false);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->grid.shape(), (Shape{1, 1, 3, 2}));
  const float* g = made->grid.data<float>();
  EXPECT_EQ(g[0], kOutsideMark);
  EXPECT_EQ(g[1], kOutsideMark);
  // v = 128 + 400 * 1.5 / 10 = 188 and 128 + 400 * 1.5 / 30 = 148, of 256; u is the middle.
  EXPECT_FLOAT_EQ(g[2], 0);
  EXPECT_FLOAT_EQ(g[3], 2 * 188.0F / 256 - 1);
  EXPECT_FLOAT_EQ(g[5], 2 * 148.0F / 256 - 1);
  EXPECT_EQ(made->behind, 1);
  EXPECT_EQ(made->inside, 2);
  EXPECT_EQ(made->beside, 0);
}

TEST(GroundGrid, APlaneThroughTheCameraIsOutside) {
  // z = 0 exactly in the first cell's centre.
  const auto made = ground_grid({forward_camera()}, {-1, 1, -2, 2, 0, 1, 1}, {704, 256}, false);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->behind, 1);
  EXPECT_EQ(made->grid.data<float>()[0], kOutsideMark);
}

TEST(GroundGrid, LeftIsLeftAndHeightLowersThePoint) {
  const auto made = ground_grid({forward_camera()}, {9, 11, 3, -3, 0.5, 3, 1}, {704, 256}, true);
  ASSERT_TRUE(made.ok());
  const float* g = made->grid.data<float>();
  // y = 2, 0, -2: from left (u = 352 - 80) to right; 1 m below the camera, pixel centres.
  EXPECT_FLOAT_EQ(g[0], static_cast<float>(545.0 / 704 - 1));
  EXPECT_FLOAT_EQ(g[2], static_cast<float>(705.0 / 704 - 1));
  EXPECT_FLOAT_EQ(g[4], static_cast<float>(865.0 / 704 - 1));
  EXPECT_FLOAT_EQ(g[1], static_cast<float>(337.0 / 256 - 1));
}

TEST(GroundGrid, RefusesAnAreaWithoutExtent) {
  const auto flat = ground_grid({forward_camera()}, {3, 3, -2, 2, 0, 1, 3}, {704, 256}, false);
  EXPECT_THAT(flat.status().message(), HasSubstr("x = 3 to 3 m: two different numbers"));
  const auto none = ground_grid({forward_camera()}, {0, 3, -2, 2, 0, 0, 3}, {704, 256}, false);
  EXPECT_THAT(none.status().message(), HasSubstr("0 rows and 3 columns"));
  EXPECT_THAT(
      ground_grid({forward_camera()}, {0, 3, -2, 2, 0, 1, 3}, {0, 256}, false).status().message(),
      HasSubstr("image is 0 x 256"));
}

TEST(GroundGrid, RefusesCellsWhoseNumbersMakeNoSense) {
  const auto error = [](const GroundArea& area) {
    return ground_grid({forward_camera()}, area, {704, 256}, false).status().message();
  };
  EXPECT_THAT(error({1e300, 1e301, -2, 2, 0, 1, 3}),
              HasSubstr("x = 1e+300 to 1e+301 m: at most 1e+06 m from the vehicle's origin"));
  EXPECT_THAT(error({0, 3, -2, -2e6, 0, 1, 3}), HasSubstr("y = -2 to -2e+06 m"));
  EXPECT_THAT(error({4, 4.0000001, -2, 2, 0, 1, 10}), HasSubstr("in 10 cells of 1e-08 m"));
  EXPECT_THAT(error({0, 3, -2, 2, -1e7, 1, 3}), HasSubstr("height of the plane is -1e+07 m"));
  EXPECT_EQ(error({1, 1e6, -1e6, 1e6, 0, 10, 10}), "");
}

TEST(GroundGrid, AMarkSamplesNothingAtAnySize) {
  const float grid[] = {kOutsideMark, kOutsideMark};
  for (const bool align : {false, true})
    for (const GridSampleMode mode :
         {GridSampleMode::kLinear, GridSampleMode::kNearest, GridSampleMode::kCubic})
      for (const std::int64_t width : {2, 3, 44})
        for (const std::int64_t height : {2, 16}) {
          GridSampleOptions options;
          options.mode = mode;
          options.align_corners = align;
          GridSampleSizes sizes;
          sizes.batch = sizes.channels = 1;
          sizes.in = {1, height, width};
          const std::vector<float> value(static_cast<std::size_t>(height * width), NAN);
          float out = 7;
          grid_sample_reference<float, float>(options, sizes, {value.data(), grid, &out});
          EXPECT_EQ(out, 0) << height << " x " << width << (align ? " aligned" : "");
        }
}

class Calibration : public testing::Test {
 protected:
  std::string read(const std::string& text) {
    std::ofstream(file_) << text;
    const auto cameras = read_calibration(file_);
    return cameras.ok() ? fmt::format("{} cameras", cameras->size()) : cameras.status().message();
  }
  TemporaryDirectory directory_;
  const std::filesystem::path file_ = directory_.path() / "calibration.json";
};

constexpr const char* kK = R"("K": [[400,0,352],[0,400,128],[0,0,1]])";
constexpr const char* kR = R"("R": [[0,-1,0],[0,0,-1],[1,0,0]])";

TEST_F(Calibration, OneCameraOrSeveral) {
  const std::string one = fmt::format(R"({{{}, {}, "t": [0,1.5,0]}})", kK, kR);
  EXPECT_EQ(read(one), "1 cameras");
  EXPECT_EQ(read(fmt::format(R"({{"cameras": [{0}, {0}]}})", one)), "2 cameras");
}

TEST_F(Calibration, SaysWhatIsWrong) {
  EXPECT_THAT(read(fmt::format("{{{}, {}}}", kK, kR)), HasSubstr("t"));
  EXPECT_THAT(read(fmt::format(R"({{{}, {}, "t": [0,1]}})", kK, kR)), HasSubstr("3 numbers"));
  EXPECT_THAT(read(fmt::format(R"({{{}, "R": [[1,0,0],[0,1,0],[0,0,2]], "t": [0,1,2]}})", kK)),
              HasSubstr("R is no rotation: R R^T is 3 off the identity"));
  EXPECT_THAT(read(fmt::format(R"({{{}, "R": [[1,0,0],[0,1,0],[0,0,-1]], "t": [0,1,2]}})", kK)),
              HasSubstr("its determinant is -1"));
  EXPECT_THAT(read(fmt::format(R"({{"K": [[400,0,3],[0,0,1],[0,0,1]], {}, "t": [0,1,2]}})", kR)),
              HasSubstr("focal lengths of K are 400 and 0"));
  EXPECT_THAT(read(fmt::format(R"({{"K": [[400,0,3],[0,9,1],[0,0,2]], {}, "t": [0,1,2]}})", kR)),
              HasSubstr("expected [[fx,skew,cx],[0,fy,cy],[0,0,1]]"));
  EXPECT_THAT(read(fmt::format(R"({{{}, {}, "t": [0,1,"nan"]}})", kK, kR)),
              HasSubstr("finite numbers"));
  EXPECT_THAT(read(R"({"cameras": []})"), HasSubstr("at least one camera"));
  EXPECT_THAT(read(R"({"k": 1})"), HasSubstr("k"));
}

TEST_F(Calibration, FromAnNpz) {
  const std::filesystem::path file = directory_.path() / "c.npz";
  const Tensor k =
      Tensor::from<double>(DType::kFloat64, {3, 3}, {400, 0, 352, 0, 400, 128, 0, 0, 1});
  const Tensor r = Tensor::from<float>(DType::kFloat32, {3, 3}, {0, -1, 0, 0, 0, -1, 1, 0, 0});
  const Tensor t = Tensor::from<double>(DType::kFloat64, {3}, {0, 1.5, 0});
  ASSERT_TRUE(write_npz(file, {{"K", k}, {"R", r}, {"t", t}}).ok());
  const auto cameras = read_calibration(file);
  ASSERT_TRUE(cameras.ok()) << cameras.status().message();
  EXPECT_EQ(cameras->at(0).k, forward_camera().k);
  EXPECT_EQ(cameras->at(0).r, forward_camera().r);
  EXPECT_EQ(cameras->at(0).t, forward_camera().t);
  // NumPy's np.array([[400, 0, 352], ...]) is int64.
  const Tensor whole =
      Tensor::from<std::int64_t>(DType::kInt64, {3, 3}, {400, 0, 352, 0, 400, 128, 0, 0, 1});
  const Tensor turn =
      Tensor::from<std::int8_t>(DType::kInt8, {3, 3}, {0, -1, 0, 0, 0, -1, 1, 0, 0});
  ASSERT_TRUE(write_npz(file, {{"K", whole}, {"R", turn}, {"t", t}}).ok());
  const auto of_integers = read_calibration(file);
  ASSERT_TRUE(of_integers.ok()) << of_integers.status().message();
  EXPECT_EQ(of_integers->at(0).k, forward_camera().k);
  EXPECT_EQ(of_integers->at(0).r, forward_camera().r);
  const Tensor truth(DType::kBool, {3, 3});
  ASSERT_TRUE(write_npz(file, {{"K", k}, {"R", truth}, {"t", t}}).ok());
  EXPECT_THAT(read_calibration(file).status().message(),
              HasSubstr("array 'R' is bool, expected float32, float64 or an integer dtype"));
  ASSERT_TRUE(write_npz(file, {{"K", k}, {"R", r}}).ok());
  EXPECT_THAT(read_calibration(file).status().message(), HasSubstr("array 't' is missing"));
  ASSERT_TRUE(write_npz(file, {{"K", k}, {"R", t}, {"t", t}}).ok());
  EXPECT_THAT(read_calibration(file).status().message(),
              HasSubstr("array 'R' is [3], expected [3,3]"));
}

}  // namespace
}  // namespace tenonnx
