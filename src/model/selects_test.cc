// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/selects.h"

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

namespace tenonnx {
namespace {

bool selects(const char* op_type, const char* domain = "") {
  onnx::NodeProto node;
  node.set_op_type(op_type);
  node.set_domain(domain);
  return is_selection(node);
}

TEST(Selects, IsByOperatorAndDomain) {
  EXPECT_TRUE(selects("TopK"));
  EXPECT_TRUE(selects("ArgMin", "ai.onnx"));
  EXPECT_FALSE(selects("GatherElements"));
  EXPECT_FALSE(selects("TopK", "some.vendor"));  // who knows what it does
  EXPECT_TRUE(selects("EfficientNMS_TRT", "some.vendor"));
  EXPECT_FALSE(selects("EfficientNMS_TRT"));  // no such operator in ai.onnx
}

}  // namespace
}  // namespace tenonnx
