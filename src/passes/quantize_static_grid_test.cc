// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/fusion_test_support.h"
#include "passes/static_grid_test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kPass = "quantize_static_grid";

TEST(QuantizeStaticGrid, MovesByNoMoreThanItSays) {
  for (const char* padding : {"zeros", "border"})
    for (const bool align : {false, true})
      for (const std::int64_t batch : {1, 2})
        for (const char* storage : {"int16", "blocks"}) {
          GridSampleCase c = roomy({});
          c.padding = padding;
          c.align_corners = align;
          c.batch = batch;
          SCOPED_TRACE(c.text() + " " + storage);
          const Tensor grid = probe_grid(c, true);
          Model model = stored_grid_model(c, grid);
          const TensorMap inputs = {{"value", ramp(c.value_shape())}};  // -1 to 1.02
          const PassOutcome outcome = run_pass(model, kPass, {{"storage", storage}});
          ASSERT_EQ(outcome.applied, 1) << first_reason(outcome);
          EXPECT_THAT(op_types(model), ElementsAre("StaticSample"));
          const std::string& what = outcome.sites[0].what;
          const double moved = std::stod(what.substr(what.find("up to ") + 6));
          // Not a number that holds whatever happens: int16 has 65,534 steps over 10 pixels, blocks
          // 254 over what a block spans.
          EXPECT_LE(moved, std::string(storage) == "int16" ? 0.51 * 10 / 65534 : 0.51 * 10 / 254);
          const double off = largest_difference(reference_of(c, inputs.at("value"), grid),
                                                run_on_cpu(model, inputs).at("y"));
          EXPECT_LE(off, 4 * 1.021 * (moved * 1.01 + 16 * 0x1p-22));
          EXPECT_GT(off, 0);
        }
}

TEST(QuantizeStaticGrid, SaysWhatItCosts) {
  GridSampleCase c;
  c.batch = 1, c.out_height = 200, c.out_width = 200;
  Model model = stored_grid_model(c, probe_grid(c, false));
  const PassOutcome outcome = run_pass(model, kPass);
  ASSERT_EQ(outcome.applied, 1);
  EXPECT_THAT(outcome.sites[0].what, HasSubstr("grid of 320000 bytes in 160016 as int16"));
}

TEST(QuantizeStaticGrid, RefusesWithReason) {
  const auto reason = [](const char* mode, const char* padding, const PassOptions& options) {
    GridSampleCase c;
    c.mode = mode;
    c.padding = padding;
    Model model = stored_grid_model(c, probe_grid(c, false));
    return first_reason(run_pass(model, kPass, options));
  };
  EXPECT_THAT(reason("nearest", "zeros", {}), HasSubstr("its mode is nearest"));
  EXPECT_THAT(reason("bilinear", "reflection", {}), HasSubstr("reflection"));
  Model moving = GridSampleCase().model();
  EXPECT_THAT(first_reason(run_pass(moving, kPass, {})), HasSubstr("depends on 'grid'"));
  const std::vector<std::string> names = {kPass};
  const auto error = [&](const char* name, const char* text) {
    return run_passes(moving, names, {{std::string(kPass) + "." + name, text}}).status().message();
  };
  EXPECT_THAT(error("storage", "int4"), HasSubstr("storage must be int16 or blocks, got 'int4'"));
}

}  // namespace
}  // namespace tenonnx
