// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenonnx::simnpu {
namespace {

using ::testing::HasSubstr;

Compiled whole() {
  Compiled compiled;
  compiled.partition = "partition_1";
  compiled.compatibility = "simnpu;format=1;device=toy;sha256=00";
  compiled.backend = Backend::kHost;
  compiled.inputs = {"x", "größe"};
  compiled.outputs = {"y"};
  compiled.nodes = {{"conv", "Conv"}, {"relu", "Relu"}};
  compiled.model = std::string("\0model\n", 7);
  return compiled;
}

TEST(Context, ReadsWhatItWrites) {
  const Compiled compiled = whole();
  const auto read = read_context(write_context(compiled), "test");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->partition, compiled.partition);
  EXPECT_EQ(read->compatibility, compiled.compatibility);
  EXPECT_EQ(read->backend, compiled.backend);
  EXPECT_EQ(read->inputs, compiled.inputs);
  EXPECT_EQ(read->outputs, compiled.outputs);
  ASSERT_EQ(read->nodes.size(), 2U);
  EXPECT_EQ(read->nodes[1].name, "relu");
  EXPECT_EQ(read->nodes[1].op_type, "Relu");
  EXPECT_EQ(read->model, compiled.model);
}

TEST(Context, DamageIsNamed) {
  const std::string bytes = write_context(whole());
  const auto message = [](std::string_view text) {
    return read_context(text, "node 'p'").status().message();
  };
  EXPECT_THAT(message(""), HasSubstr("node 'p': the binary of this partition is missing"));
  EXPECT_THAT(message("ONNX"), HasSubstr("no context of the simulated NPU"));
  EXPECT_THAT(message("TENONNX-SIMNPU-CONTEXT 1\nx"), HasSubstr("no length"));
  EXPECT_THAT(message("TENONNX-SIMNPU-CONTEXT 1\n99\n{}"), HasSubstr("cut off"));
  EXPECT_THAT(message("TENONNX-SIMNPU-CONTEXT 1\n2\n{}"), HasSubstr("partition"));
  // Cut anywhere before the model it is refused, and never a crash.
  const std::size_t header = bytes.size() - whole().model.size();
  for (std::size_t size = 0; size < header; ++size)
    EXPECT_FALSE(read_context(std::string_view(bytes).substr(0, size), "cut").ok()) << size;
}

}  // namespace
}  // namespace tenonnx::simnpu
