// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/placement_proof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "flow/placement_checks.h"
#include "model/parse_for_test.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::filesystem::path kExample =
    std::filesystem::path(TENONNX_TEST_SOURCE_DIR) / "examples/models/shapes_deimv2.onnx";

// Sampling, a softmax, a selection that devices/simnpu.json does not take, and a ReduceMax that its
// vendor computes on the CPU.
constexpr const char* kShared = R"(<ir_version: 8, opset_import: ["" : 17]>
  g (float[1,4,8,8] x, float[1,6,6,2] grid) => (float[1,4,6,3] y, float[1,4,6,6] z)
  <int64[1] three = {3}> {
    a = Relu (x)
    b = GridSample <mode = "bilinear"> (a, grid)
    c = Softmax <axis = -1> (b)
    top, index = TopK (c, three)
    y = Sigmoid (top)
    m = ReduceMax <axes = [3], keepdims = 1> (c)
    z = Mul (c, m)
  })";
constexpr const char* kWhole = R"(<ir_version: 8, opset_import: ["" : 17]>
  g (float[1,4,8,8] x, float[1,6,6,2] grid) => (float[1,4,6,6] z) {
    a = Relu (x)
    b = GridSample <mode = "bilinear"> (a, grid)
    c = Softmax <axis = -1> (b)
    z = Sigmoid (c)
  })";

class PlacementProof : public ::testing::Test {
 protected:
  PlacementResult prove(const char* text, PlacementOptions options) {
    options.model = work_.path() / "model.onnx";
    EXPECT_TRUE(parse_model(text).save(options.model).ok());
    auto result = prove_placement(options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? std::move(*result) : PlacementResult();
  }
  PlacementResult prove(const char* text, const std::string& on, bool allow_fallback = false) {
    PlacementOptions options;
    options.on = on;
    options.allow_fallback = allow_fallback;
    return prove(text, options);
  }
  TemporaryDirectory work_;
};

const PlacedNode* node_of(const PlacementResult& result, const std::string& op_type) {
  const auto it = std::find_if(result.nodes.begin(), result.nodes.end(),
                               [&](const PlacedNode& node) { return node.op_type == op_type; });
  return it == result.nodes.end() ? nullptr : &*it;
}

NodePlace place_of(const PlacementResult& result, const std::string& op_type) {
  const PlacedNode* node = node_of(result, op_type);
  return node != nullptr ? node->place : NodePlace::kFolded;
}

std::string note_of(const PlacementResult& result, const std::string& name) {
  for (const Check& check : result.checks)
    if (check.name == name) return std::string(to_string(check.verdict)) + ": " + check.note;
  return "no check of that name";
}

TEST_F(PlacementProof, AModelThatTheDeviceTakesWhole) {
  const PlacementResult result = prove(kWhole, "provider:simnpu");
  EXPECT_EQ(result.verdict, Verdict::kPass) << describe(result);
  EXPECT_EQ(result.count(NodePlace::kDevice), 4U);
  ASSERT_EQ(result.partitions.size(), 1U);
  EXPECT_EQ(result.partitions[0].nodes, 4U);
  EXPECT_THAT(result.boundaries, IsEmpty());
  ASSERT_EQ(result.inputs.size(), 1U);
  EXPECT_EQ(result.inputs[0].bytes, (4 * 8 * 8 + 6 * 6 * 2) * 4);
  ASSERT_EQ(result.outputs.size(), 1U);
  EXPECT_EQ(result.outputs[0].bytes, 4 * 6 * 6 * 4);
}

TEST_F(PlacementProof, EachNodeAndEachBoundary) {
  const PlacementResult result = prove(kShared, "provider:simnpu", true);
  EXPECT_EQ(result.verdict, Verdict::kPass) << describe(result);
  EXPECT_EQ(place_of(result, "GridSample"), NodePlace::kDevice);
  EXPECT_EQ(place_of(result, "TopK"), NodePlace::kFallback);
  EXPECT_THAT(node_of(result, "TopK")->why, HasSubstr("TopK is not among the device's operators"));
  EXPECT_EQ(place_of(result, "ReduceMax"), NodePlace::kVendorCpu);
  // {Relu, GridSample, Softmax}, {ReduceMax}, {Sigmoid} and {Mul}, which both come behind one
  // change of place.
  ASSERT_EQ(result.partitions.size(), 3U);
  const int first = node_of(result, "Relu")->partition;
  const int host = node_of(result, "ReduceMax")->partition;
  const int last = node_of(result, "Mul")->partition;
  EXPECT_EQ(node_of(result, "Softmax")->partition, first);
  EXPECT_EQ(node_of(result, "Sigmoid")->partition, last);
  const auto bytes = [&](int from, int to) -> std::int64_t {
    for (const PlacementBoundary& one : result.boundaries)
      if (one.from == from && one.to == to) return one.bytes;
    return -1;
  };
  constexpr std::int64_t kSoftmax = 4 * 6 * 6 * 4;
  EXPECT_EQ(result.boundaries.size(), 5U);
  EXPECT_EQ(bytes(first, -1), kSoftmax);
  EXPECT_EQ(bytes(first, host), kSoftmax);
  EXPECT_EQ(bytes(first, last), kSoftmax);
  EXPECT_EQ(bytes(host, last), kSoftmax / 6);
  EXPECT_EQ(bytes(-1, last), kSoftmax / 2);
  EXPECT_THAT(describe(result),
              AllOf(HasSubstr("vendor's CPU backend"), HasSubstr("provider fallback")));
}

TEST_F(PlacementProof, FallbackIsForbiddenUnlessItIsAllowed) {
  const PlacementResult result = prove(kShared, "provider:simnpu");
  EXPECT_EQ(result.verdict, Verdict::kFail);
  EXPECT_THAT(note_of(result, "session without fallback"),
              AllOf(HasSubstr("FAIL"), HasSubstr("1 of 7 nodes would run on the CPU"),
                    HasSubstr("1 TopK, first 'top'")));
  EXPECT_THAT(note_of(result, "nodes that fell back"), HasSubstr("FAIL: 1 TopK"));
}

// Fault 1: a wrong chip, or no backend library. The provider is there, and does nothing.
TEST_F(PlacementProof, AProviderThatIsListedAndTakesNothingFails) {
  for (const char* on :
       {"provider:simnpu,soc=v68", "provider:simnpu,backend=/no/such/libbackend.so"}) {
    for (const bool allow_fallback : {false, true}) {
      const PlacementResult result = prove(kWhole, on, allow_fallback);
      EXPECT_EQ(result.verdict, Verdict::kFail) << on;
      EXPECT_THAT(result.findings,
                  Contains(HasSubstr("SimNpuExecutionProvider is listed by the session, and all 4 "
                                     "nodes ran on CPUExecutionProvider")));
      EXPECT_THAT(result.causes, AllOf(Contains(HasSubstr("soc")),
                                       Contains(HasSubstr("backend library is missing"))));
      EXPECT_EQ(result.count(NodePlace::kFallback), 4U);
    }
  }
}

// Fault 2.
TEST_F(PlacementProof, AnOperatorWithoutKernelFailsAtRunTime) {
  const PlacementResult result = prove(kWhole, "provider:simnpu,no_kernel=GridSample");
  EXPECT_EQ(result.verdict, Verdict::kFail);
  EXPECT_THAT(note_of(result, "session without fallback"), HasSubstr("PASS"));
  EXPECT_THAT(note_of(result, "run"),
              AllOf(HasSubstr("FAIL"), HasSubstr("GridSample"), HasSubstr("in this runtime")));
  EXPECT_EQ(place_of(result, "GridSample"), NodePlace::kUnknown);
}

// Fault 3: the values betray it.
TEST_F(PlacementProof, AnOperatorThatIsOnlyLabelledAsTheDevicesFails) {
  const PlacementResult result = prove(kWhole, "provider:simnpu,relabel=GridSample");
  EXPECT_EQ(result.verdict, Verdict::kFail);
  EXPECT_THAT(
      note_of(result, "operators whose values are not the device's"),
      AllOf(HasSubstr("FAIL"), HasSubstr("GridSample"), HasSubstr("float16 does not hold")));
  EXPECT_EQ(place_of(result, "GridSample"), NodePlace::kVendorCpu);
  EXPECT_EQ(place_of(result, "Softmax"), NodePlace::kDevice);
}

// What a selection gives is stored already: nothing betrays it but the device file.
TEST_F(PlacementProof, ALabelThatTheDeviceFileContradictsIsNoProof) {
  const PlacementResult result = prove(kShared, "provider:simnpu,relabel=TopK");
  EXPECT_EQ(result.verdict, Verdict::kInconclusive) << describe(result);
  EXPECT_THAT(note_of(result, "nodes whose place is not known"),
              AllOf(HasSubstr("1 TopK"), HasSubstr("has no such kernel")));
}

// Fault 4.
TEST_F(PlacementProof, AContextWhoseSecondPartitionLacksItsBinaryIsRefused) {
  for (const bool embed : {false, true}) {
    PlacementOptions options;
    options.on = "provider:simnpu,drop_binary=2";
    options.allow_fallback = true;
    options.embed = embed;
    options.context = work_.path() / (embed ? "embedded.onnx" : "beside.onnx");
    const PlacementResult result = prove(kShared, options);
    EXPECT_EQ(result.verdict, Verdict::kFail);
    EXPECT_THAT(note_of(result, "context reloads"),
                AllOf(HasSubstr("FAIL"), HasSubstr("EPContext node"), HasSubstr("binary"),
                      HasSubstr(embed ? "is missing" : "beside_2.bin")));
  }
}

TEST_F(PlacementProof, PinningThatMovesEverythingIsReportedAsThat) {
  PlacementOptions options;
  options.affinity = {"Softmax=cpu"};
  options.allow_fallback = true;
  options.on = "provider:simnpu,affinity_drops_all=1";
  const PlacementResult all = prove(kWhole, options);
  EXPECT_EQ(all.verdict, Verdict::kFail);
  EXPECT_THAT(
      all.findings,
      Contains(AllOf(HasSubstr("pinning Softmax to the CPU moved everything there"),
                     HasSubstr("1 node is of that type"), HasSubstr("4 of the device's 4"))));
  options.on = "provider:simnpu";
  const PlacementResult one = prove(kWhole, options);
  EXPECT_EQ(one.verdict, Verdict::kPass) << describe(one);
  EXPECT_EQ(place_of(one, "Softmax"), NodePlace::kCpu);
  EXPECT_EQ(one.partitions.size(), 2U);
  EXPECT_THAT(one.findings, Contains(AllOf(HasSubstr("moved 1 node, 1 of that type"),
                                           HasSubstr("partitions: 1 before, 2 now"))));
}

TEST_F(PlacementProof, ContextsAreReloadedWithoutFallbackAndAreEqual) {
  for (const bool embed : {false, true}) {
    PlacementOptions options;
    options.on = "provider:simnpu";
    options.embed = embed;
    options.context = work_.path() / (embed ? "embedded.onnx" : "beside.onnx");
    const PlacementResult result = prove(kWhole, options);
    EXPECT_EQ(result.verdict, Verdict::kPass) << describe(result);
    EXPECT_THAT(note_of(result, "outputs that differ from those without a context"),
                HasSubstr("PASS"));
    EXPECT_TRUE(std::filesystem::exists(options.context));
    EXPECT_EQ(std::filesystem::exists(work_.path() / "beside_1.bin"), true) << "written first";
  }
}

TEST_F(PlacementProof, AContextOfAnotherDeviceFileIsRefused) {
  PlacementOptions options;
  options.on = "provider:simnpu";
  options.context = work_.path() / "beside.onnx";
  options.embed = true;
  ASSERT_EQ(prove(kWhole, options).verdict, Verdict::kPass);
  // The same device by name, whose file has changed since.
  const auto text =
      read_file(std::filesystem::path(TENONNX_TEST_SOURCE_DIR) / "devices/simnpu.json");
  ASSERT_TRUE(text.ok());
  const std::filesystem::path devices = work_.path() / "devices";
  std::filesystem::create_directory(devices);
  ASSERT_TRUE(write_file_atomic(devices / "simnpu.json", *text + "\n").ok());
  ASSERT_EQ(setenv("TENONNX_DEVICES", devices.c_str(), 1), 0);
  PlacementOptions again;
  again.on = "provider:simnpu";
  again.model = options.context;
  const auto result = prove_placement(again);
  unsetenv("TENONNX_DEVICES");
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->verdict, Verdict::kFail);
  EXPECT_THAT(note_of(*result, "session"), HasSubstr("simnpu"));
}

TEST_F(PlacementProof, OfTheCpuEverythingIsMeantForIt) {
  const PlacementResult result = prove(kWhole, "cpu");
  EXPECT_EQ(result.count(NodePlace::kCpu), 4U) << describe(result);
}

TEST_F(PlacementProof, WhatCannotBeAskedIsSaid) {
  PlacementOptions options;
  options.model = kExample;
  options.on = "sim:htp-v73";
  EXPECT_THAT(prove_placement(options).status().message(), HasSubstr("has no placement"));
  options.on = "cpu";
  options.affinity = {"Softmax=cpu"};
  EXPECT_THAT(prove_placement(options).status().message(),
              AllOf(HasSubstr("--affinity"), HasSubstr("'cpu' has no such option")));
  options.affinity.clear();
  options.context = work_.path() / "c.onnx";
  EXPECT_THAT(prove_placement(options).status().message(), HasSubstr("--context"));
  options.on = "provider:simnpu";
  options.affinity = {"Softmax"};
  EXPECT_THAT(prove_placement(options).status().message(), HasSubstr("OPERATOR=cpu"));
  options.context.clear();
  options.allow_fallback = true;
  options.affinity = {"Softmx=cpu"};
  EXPECT_THAT(prove_placement(options).status().message(),
              AllOf(HasSubstr("no node of that type"), HasSubstr("Softmax")));
  options.affinity.clear();
  options.context = work_.path() / "c.onnx";
  ASSERT_TRUE(write_file_atomic(options.context, "mine").ok());
  options.allow_fallback = true;
  EXPECT_THAT(prove_placement(options).status().message(), HasSubstr("exists already"));
  EXPECT_EQ(*read_file(options.context), "mine");
}

// The example, which the device does not take whole: the same as ever, and nothing unknown.
TEST_F(PlacementProof, EveryNodeOfTheExampleHasItsPlace) {
  PlacementOptions options;
  options.model = kExample;
  options.on = "provider:simnpu";
  options.allow_fallback = true;
  const auto result = prove_placement(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->verdict, Verdict::kPass) << describe(*result);
  EXPECT_EQ(result->count(NodePlace::kUnknown), 0U);
  EXPECT_GT(result->count(NodePlace::kDevice), 900U);
  EXPECT_EQ(node_of(*result, "TopK")->place, NodePlace::kFallback);
  EXPECT_GT(result->boundaries.size(), result->partitions.size());
}

}  // namespace
}  // namespace tenonnx
