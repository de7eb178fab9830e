// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/qnn_refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// As onnxruntime-qnn 2.7.0 writes them.
const std::string kErf =
    "QNN.backendValidateOpConfig() failed for node `/a/Erf` of type `ElementWiseNeuron` with error "
    "code "
    "3110\n";
const std::string kErfAgain =
    "QNN.backendValidateOpConfig() failed for node `/a/Erf_2` of type `ElementWiseNeuron` with "
    "error "
    "code 3110\n";
constexpr const char* kForbidden =
    "This session contains graph nodes that are assigned to the default CPU EP, but fallback to "
    "CPU EP "
    "has been explicitly disabled by the user.";

TEST(QnnRefusal, NamesTheNodes) {
  const auto refused = refused_nodes({kErf, kErf, "something else", kErfAgain});
  ASSERT_EQ(refused.size(), 2U);
  EXPECT_EQ(refused[0].node, "/a/Erf");
  EXPECT_EQ(refused[0].type, "ElementWiseNeuron");
}

TEST(QnnRefusal, SaysWhichNodesWouldFallBackAndWhatToDo) {
  const std::string text = explain_qnn_refusal(kForbidden, {kErf},
                                               {{"CPUExecutionProvider", "/a/Erf", "Erf", 0},
                                                {"QNNExecutionProvider", "/a/Conv", "Conv", 1}});
  EXPECT_THAT(text, StartsWith("1 of 2 nodes would run on the CPU: 1 Erf, first '/a/Erf'"));
  EXPECT_THAT(text, AllOf(HasSubstr("the provider refuses 1 node: ElementWiseNeuron '/a/Erf'"),
                          HasSubstr("rewrite --pass fuse_gelu")));
}

TEST(QnnRefusal, NodesThatTheProviderCannotExpress) {
  const std::vector<std::string> said = {
      "Unsupported nodes in QNN EP: { name: a/Erf, type: Erf }{ name: Conv_token_12, type: Conv "
      "}, "};
  const auto refused = refused_nodes(said);
  ASSERT_EQ(refused.size(), 2U);
  EXPECT_EQ(refused[1].node, "Conv");
  EXPECT_EQ(refused[1].type, "Conv");
  const std::string text =
      explain_qnn_refusal(kForbidden, said, {{"CPUExecutionProvider", "a/Erf", "Erf", 0}});
  EXPECT_THAT(text, AllOf(HasSubstr("the provider refuses 2 nodes: Erf 'a/Erf', Conv 'Conv'"),
                          HasSubstr("rewrite --pass fuse_gelu"), Not(HasSubstr("explicitly"))));
}

TEST(QnnRefusal, OperatorsOfWhichTheProviderSaysNothing) {
  EXPECT_THAT(explain_qnn_refusal("", {}, {{"CPUExecutionProvider", "d", "Det", 0}}),
              AllOf(HasSubstr("all 1 node would run on CPUExecutionProvider"),
                    HasSubstr("1 Det, first 'd'"), HasSubstr("HTP has no such kernel")));
}

TEST(QnnRefusal, NamesInTheModel) {
  EXPECT_EQ(model_name("a/Conv_token_12"), "a/Conv");
  EXPECT_EQ(model_name("a/Conv_token_"), "a/Conv_token_");
  EXPECT_EQ(model_name("a_token_b"), "a_token_b");
}

TEST(QnnRefusal, AWrongChip) {
  const std::string text = explain_qnn_refusal(
      kForbidden,
      {"QNN SetupBackend failed Failed to create device. Error: QNN_DEVICE_ERROR_INVALID_CONFIG: "
       "Invalid config values"},
      {{"CPUExecutionProvider", "a", "Relu", 0}});
  EXPECT_THAT(text, AllOf(HasSubstr("all 1 node would run on CPUExecutionProvider"),
                          HasSubstr("the library does not know this soc"), HasSubstr("soc=43")));
}

TEST(QnnRefusal, KnowsTheTexts) {
  const auto cause = [](const char* error) { return explain_qnn_refusal(error, {}, {}); };
  EXPECT_THAT(cause("Failed to finalize QNN graph. Error: QNN_COMMON_ERROR_MEM_ALLOC: Memory "
                    "allocation related error., Code: 1002"),
              HasSubstr("it has no fp16 (HTP v68)"));
  EXPECT_THAT(cause("Unable to load backend, error:  libQnnHtp.so: cannot open shared object file"),
              HasSubstr("the backend library is not beside the provider's"));
  EXPECT_THAT(
      cause("Failed to setup QNN input tensors for graph g. Having zero graph inputs is not "
            "supported"),
      HasSubstr("rewrite --pass fold_constants"));
  EXPECT_THAT(cause("Unsupported FP64 data type in graph IO."),
              HasSubstr("fold the shape arithmetic"));
  EXPECT_THAT(cause("Failed to load op_affinity config file 'x': op_affinity config: top-level"),
              HasSubstr(R"({"op_type": {"TopK": "cpu"}})"));
  EXPECT_THAT(
      cause("Failed to create context from binary. Error: QNN_CONTEXT_ERROR_INVALID_ARGUMENT: "
            "An argument to QNN context API is deemed invalid by a backend"),
      HasSubstr("compiled by another version"));
  EXPECT_EQ(cause("a text that nobody has seen"), "a text that nobody has seen");
}

// Where the device does not start, or a chip has no fp16, every node is refused: no list of nodes.
TEST(QnnRefusal, AChipWithoutFloat16ListsNoNodes) {
  EXPECT_THAT(
      explain_qnn_refusal(
          "Node 'Conv_token_1' OpType:Conv was inserted using the NHWC format as requested by "
          "QNNExecutionProvider, but was not selected",
          {kErf}, {}),
      AllOf(HasSubstr("computes no fp16 convolution"), Not(HasSubstr("the provider refuses"))));
}

}  // namespace
}  // namespace tenonnx
