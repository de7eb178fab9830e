// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// For the tests of passes: models from text, runs on the CPU, what is left of a graph.
#pragma once

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "model/check.h"
#include "model/graph.h"
#include "ort/executor.h"
#include "ort/test_models.h"
#include "passes/runner.h"

namespace tenonnx {

// "Reshape", "Add", ...: the main graph's operators in order.
inline std::vector<std::string> op_types(const Model& model) {
  std::vector<std::string> types;
  for (const auto& node : model.proto().graph().node()) types.push_back(node.op_type());
  return types;
}

// Nodes of the whole model by operator, bodies included.
inline std::map<std::string, int> op_counts(const Model& model) {
  std::map<std::string, int> counts;
  for_each_graph(model.proto().graph(), [&](const onnx::GraphProto& graph) {
    for (const auto& node : graph.node()) ++counts[node.op_type()];
  });
  return counts;
}

inline PassOutcome run_pass(Model& model, const std::string& name,
                            const PassOptions& options = {}) {
  PassOptions prefixed;
  for (const auto& [key, value] : options)
    prefixed[name == "fix_input_shapes" ? key : name + "." + key] = value;
  const std::vector<std::string> names = {name};
  auto reports = run_passes(model, names, prefixed);
  EXPECT_TRUE(reports.ok()) << reports.status().message();
  return reports.ok() ? reports->front().outcome : PassOutcome();
}

inline TensorMap run_on_cpu(const Model& model, const TensorMap& inputs,
                            Optimization optimization = Optimization::kDisabled) {
  LoadOptions options;
  options.intra_op_threads = 1;
  options.optimization = optimization;
  const auto loaded = make_cpu_executor()->load(model, options);
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  if (!loaded.ok()) return {};
  auto outputs = (*loaded)->run(inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  return outputs.ok() ? std::move(outputs).value() : TensorMap();
}

// Dtype, shape and every bit.
inline void expect_identical(const TensorMap& a, const TensorMap& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, left] : a) {
    ASSERT_TRUE(b.contains(name)) << name;
    const Tensor& right = b.at(name);
    EXPECT_EQ(left.dtype(), right.dtype()) << name;
    ASSERT_EQ(left.shape(), right.shape()) << name;
    // An empty tensor may have no memory at all, which memcmp must not be given.
    if (left.bytes() > 0) {
      EXPECT_EQ(std::memcmp(left.raw(), right.raw(), left.bytes()), 0) << name;
    }
  }
}

// -1, -0.75, ... a pattern without repetition in its first 97 elements.
inline Tensor ramp(Shape shape) {
  Tensor t(DType::kFloat32, std::move(shape));
  for (std::int64_t i = 0; i < t.size(); ++i)
    t.mutable_data<float>()[i] = static_cast<float>((i * 37) % 97) / 48.0F - 1.0F;
  return t;
}

}  // namespace tenonnx
