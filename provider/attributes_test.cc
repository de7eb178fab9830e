// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Attributes of every kind reach the partition, tensors among them. The values decide: a lost
// attribute gives others.
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <cstdlib>
#include <filesystem>

#include "adapters/address.h"
#include "adapters/provider.h"
#include "base/files.h"
#include "base/json.h"
#include "base/temporary_directory.h"
#include "model/parse_for_test.h"

namespace tenonnx {
namespace {

TEST(Attributes, OfEveryKind) {
  const TemporaryDirectory devices;
  auto json = read_json_file(std::string(TENONNX_TEST_SOURCE_DIR) + "/devices/simnpu.json");
  ASSERT_TRUE(json.ok());
  (*json)["name"] = "toy";
  (*json)["supported"] = Json::array({{{"operators", {"LabelEncoder"}},
                                       {"domain", "ai.onnx.ml"},
                                       {"dtypes", {"float32"}},
                                       {"source", "none"},
                                       {"checked", "2026-11"}},
                                      {{"operators", {"LeakyRelu", "MaxPool"}},
                                       {"dtypes", {"float32"}},
                                       {"source", "none"},
                                       {"checked", "2026-11"}}});
  ASSERT_TRUE(write_json_file(devices.path() / "toy.json", *json).ok());
  ASSERT_EQ(setenv("TENONNX_DEVICES", devices.path().c_str(), 1), 0);
  // A float, ints, a string, tensors, a float list.
  const Model model = parse_model(R"(<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 4]>
    g (float[1,1,4] x) => (float[1,1,4] y) {
      a = LeakyRelu <alpha = 0.25> (x)
      b = MaxPool <kernel_shape = [3], auto_pad = "SAME_UPPER"> (a)
      c = ai.onnx.ml.LabelEncoder <keys_tensor = float[2] {1.0, 4.0},
                                   values_tensor = float[2] {10.0, 40.0},
                                   default_tensor = float[1] {-1.0}> (b)
      y = ai.onnx.ml.LabelEncoder <keys_floats = [10.0, 40.0], values_floats = [0.5, 8.0],
                                   default_float = 3.0> (c)
    })");
  const auto executor = make_executor("provider:simnpu:toy");
  ASSERT_TRUE(executor.ok()) << executor.status().message();
  LoadOptions options;
  options.disable_fallback = true;
  const auto graph = (*executor)->load(model, options);
  unsetenv("TENONNX_DEVICES");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(provider_record(**graph)->vendor.size(), 4U);
  const auto made = (*graph)->run(
      {{"x", Tensor::from<float>(DType::kFloat32, {1, 1, 4}, {1.0F, -8.0F, -8.0F, 4.0F})}});
  ASSERT_TRUE(made.ok()) << made.status().message();
  // LeakyRelu: 1 -2 -2 4; the largest of three: 1 1 4 4; encoded: 10 10 40 40; then 0.5 0.5 8 8.
  const float* y = made->at("y").data<float>();
  EXPECT_EQ(std::vector<float>(y, y + 4), (std::vector<float>{0.5F, 0.5F, 8.0F, 8.0F}));
}

}  // namespace
}  // namespace tenonnx
