// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/nearest.h"

#include <gtest/gtest.h>

namespace tenonnx {
namespace {

TEST(NearestNames, ByEditDistanceThenByName) {
  EXPECT_EQ(nearest_names("fold_constant", {"fuse_gelu", "fold_constants", "fold_batch"}),
            "'fold_constants', 'fold_batch', 'fuse_gelu'");
  EXPECT_EQ(nearest_names("x", {"b", "a"}), "'a', 'b'");
}

TEST(NearestNames, WhatAToolchainRewroteComesFirst) {
  EXPECT_EQ(nearest_names("/decoder/Mul_output_0",
                          {"/decoder/Mul_output_1", "_decoder_Mul_output_0", "/d", "/e", "/f"}),
            "'_decoder_Mul_output_0', '/decoder/Mul_output_1', '/d' and 2 more");
}

// What is in the middle of long names is nearer to any short one.
TEST(NearestNames, ThoseThatContainThePartComeNext) {
  EXPECT_EQ(nearest_names("down_proj/MatMul",
                          {"/Mul", "/Concat", "/decoder/layers.10/mlp/down_proj/MatMul_1",
                           "/decoder/layers.0/mlp/down_proj/MatMul"}),
            "'/decoder/layers.0/mlp/down_proj/MatMul', "
            "'/decoder/layers.10/mlp/down_proj/MatMul_1', '/Mul' and 1 more");
  // Two letters are in names that have nothing to do with what was meant.
  EXPECT_EQ(nearest_names("/ab", {"/a/long/name/with/ab", "/ac"}), "'/ac', '/a/long/name/with/ab'");
}

TEST(NearestNames, NoNames) { EXPECT_EQ(nearest_names("x", {}), ""); }

}  // namespace
}  // namespace tenonnx
