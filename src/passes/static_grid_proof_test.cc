// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The proof on the passes that fold a grid: they pass, and the same with a fault planted does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "passes/edit.h"
#include "passes/proof.h"
#include "passes/static_grid_test_support.h"

namespace tenonnx {
namespace {

// One image, 200 points, of which some lie outside.
GridSampleCase bev(bool straight) {
  GridSampleCase c;
  c.batch = 1, c.channels = 4, c.height = 12, c.width = 20;
  c.out_height = straight ? 6 : 10;
  c.out_width = straight ? 10 : 20;
  return c;
}

// A turn; or every second pixel, which is a Resize. `shift`: of x, in pixels.
Tensor grid_of(const GridSampleCase& c, bool straight, double shift) {
  Tensor grid(DType::kFloat32, c.grid_shape());
  float* g = grid.mutable_data<float>();
  for (std::int64_t i = 0; i < c.out_height; ++i)
    for (std::int64_t j = 0; j < c.out_width; ++j) {
      const double x = straight ? 2 * double(j) + 0.5 : double(j) + 0.31 * double(i) - 1.6;
      const double y = straight ? 2 * double(i) + 0.5 : double(i) * 1.1 - 0.07 * double(j);
      *g++ = grid_coordinate(x + shift, c.width, false);
      *g++ = grid_coordinate(y, c.height, false);
    }
  return grid;
}

PassProof prove(const std::string& name, const Model& before, const Model& after,
                const Shape& shape) {
  const auto pass = find_pass(name);
  EXPECT_TRUE(pass.ok()) << name;
  const auto executor = make_cpu_executor();
  ProofData data;
  data.count = 1;
  data.load = [&](std::size_t) -> Result<TensorMap> { return TensorMap{{"value", ramp(shape)}}; };
  data.name = [](std::size_t) { return std::string("captured"); };
  auto proof = PassProver(*executor, data, {}).prove(**pass, before, after, {});
  EXPECT_TRUE(proof.ok()) << proof.status().message();
  return proof.ok() ? std::move(proof).value() : PassProof();
}

struct Way {
  const char *pass, *form;
  bool straight;
};
constexpr Way kWays[] = {{"fold_static_grid", "rows", false},
                         {"fold_static_grid", "columns", false},
                         {"fold_static_grid", "operator", false},
                         {"fold_static_grid", "columns", true},
                         {"replace_grid_sample_resize", "resize", true},
                         {"replace_grid_sample_resize", "matmul", true}};

TEST(StaticGridProof, TheHealthyFormsPassAndAShiftedOneDoesNot) {
  for (const Way& way : kWays) {
    SCOPED_TRACE(fmt::format("{} {}", way.pass, way.form));
    const GridSampleCase c = bev(way.straight);
    const Model before = stored_grid_model(c, grid_of(c, way.straight, 0));
    for (const double shift : {0.0, 0.5, 1.0}) {
      // matmul and the sums take every grid, resize those alone that it can: half a pixel it cannot
      // everywhere, a whole one it can.
      const bool possible = std::string(way.form) != "resize" || shift == 0;
      if (!possible) continue;
      Model after = stored_grid_model(c, grid_of(c, way.straight, shift));
      ASSERT_EQ(run_pass(after, way.pass, {{"form", way.form}}).applied, 1);
      const PassProof proof = prove(way.pass, before, after, c.value_shape());
      EXPECT_EQ(proof.verdict, shift == 0 ? Verdict::kPass : Verdict::kFail)
          << "shift " << shift << ": " << to_text(proof.worst);
    }
  }
}

TEST(StaticGridProof, OneWrongIndexOfManyIsCaught) {
  const GridSampleCase c = bev(false);
  const Model before = stored_grid_model(c, grid_of(c, false, 0));
  for (const char* form : {"rows", "columns", "operator"}) {
    Model after = before.clone();
    ASSERT_EQ(run_pass(after, "fold_static_grid", {{"form", form}}).applied, 1);
    for (auto& tensor : *after.mutable_proto().mutable_graph()->mutable_initializer()) {
      if (tensor.data_type() != onnx::TensorProto::INT32) continue;
      auto values = to_tensor(tensor);
      ASSERT_TRUE(values.ok());
      Tensor changed = values->clone();
      changed.mutable_data<std::int32_t>()[changed.size() / 2 + 1] ^= 1;
      tensor = to_tensor_proto(changed, tensor.name());
      break;
    }
    EXPECT_EQ(prove("fold_static_grid", before, after, c.value_shape()).verdict, Verdict::kFail)
        << form;
  }
}

}  // namespace
}  // namespace tenonnx
