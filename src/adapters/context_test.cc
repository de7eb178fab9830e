// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <filesystem>
#include <string>

#include "base/files.h"
#include "base/status.h"
#include "base/temporary_directory.h"
#include "model/parse_for_test.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A model of one compiled partition, as providers write it.
Model compiled(const std::string& content, int embed_mode, int main_context = 1) {
  onnx::ModelProto proto;
  proto.set_ir_version(8);
  auto* standard = proto.add_opset_import();
  standard->set_version(17);
  auto* microsoft = proto.add_opset_import();
  microsoft->set_domain("com.microsoft");
  microsoft->set_version(1);
  onnx::GraphProto& graph = *proto.mutable_graph();
  graph.set_name("g");
  for (auto* info : {graph.add_input(), graph.add_output()}) {
    auto* type = info->mutable_type()->mutable_tensor_type();
    type->set_elem_type(onnx::TensorProto::FLOAT);
    type->mutable_shape()->add_dim()->set_dim_value(4);
  }
  graph.mutable_input(0)->set_name("x");
  graph.mutable_output(0)->set_name("y");
  onnx::NodeProto& node = *graph.add_node();
  node.set_name("part");
  node.set_op_type("EPContext");
  node.set_domain("com.microsoft");
  node.add_input("x");
  node.add_output("y");
  const auto add = [&](const char* name) {
    auto* attribute = node.add_attribute();
    attribute->set_name(name);
    return attribute;
  };
  for (const auto& [name, value] :
       {std::pair{"embed_mode", embed_mode}, std::pair{"main_context", main_context}}) {
    auto* attribute = add(name);
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(value);
  }
  auto* cache = add("ep_cache_context");
  cache->set_type(onnx::AttributeProto::STRING);
  cache->set_s(content);
  auto model = Model::from_proto(std::move(proto));
  EXPECT_TRUE(model.ok()) << model.status().message();
  return std::move(*model);
}

class Context : public ::testing::Test {
 protected:
  std::string error(const Model& model) {
    const Status status = check_contexts(model, dir_.path());
    return status.ok() ? "no error" : status.message();
  }
  const TemporaryDirectory dir_;
};

TEST_F(Context, ABinaryInsideIsEnough) {
  EXPECT_EQ(count_contexts(compiled("bytes", 1)), 1U);
  EXPECT_EQ(error(compiled("bytes", 1)), "no error");
}

TEST_F(Context, WithoutItsBinary) {
  EXPECT_THAT(error(compiled("", 1)), AllOf(HasSubstr("'part' (EPContext) is without its binary"),
                                            HasSubstr("compile the model again")));
  EXPECT_THAT(error(compiled("", 0)), HasSubstr("is without its binary"));
}

TEST_F(Context, ABinaryBesideMustBeThere) {
  EXPECT_THAT(error(compiled("part.bin", 0)),
              HasSubstr("'part.bin' of the compiled partition 'part' "
                        "(EPContext) is not there"));
  ASSERT_TRUE(write_file_atomic(dir_.path() / "part.bin", "").ok());
  EXPECT_THAT(error(compiled("part.bin", 0)), HasSubstr("is empty"));
  ASSERT_TRUE(write_file_atomic(dir_.path() / "part.bin", "bytes").ok());
  EXPECT_EQ(error(compiled("part.bin", 0)), "no error");
  EXPECT_NE(error(compiled("../part.bin", 0)), "no error") << "out of the package";
}

// Three partitions as QNN writes them: the first has the binary, the others are in it.
Model three(const std::string& first, const std::string& second) {
  return parse_model(R"(<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
    g (float[4] x) => (float[4] y) {
      a = com.microsoft.EPContext <)" +
                     first + R"(> (x)
      b = com.microsoft.EPContext <)" +
                     second + R"(> (a)
      y = com.microsoft.EPContext <main_context = 0, source = "QNN"> (b) })");
}

TEST_F(Context, PartitionsShareTheBinaryOfAMainOne) {
  const Model model = three(R"(embed_mode = 1, ep_cache_context = "bytes", source = "QNN")",
                            R"(main_context = 0, source = "QNN")");
  EXPECT_EQ(error(model), "no error");
  const auto partitions = context_partitions(model);
  ASSERT_EQ(partitions.size(), 3U);
  EXPECT_EQ(partitions[0].name, "a");
  EXPECT_TRUE(partitions[0].main);
  EXPECT_FALSE(partitions[1].main);
  EXPECT_THAT(partitions[1].inputs, ElementsAre("a"));
  EXPECT_THAT(partitions[1].outputs, ElementsAre("b"));
}

TEST_F(Context, NoMainContextAtAll) {
  EXPECT_THAT(
      error(three(R"(main_context = 0, source = "QNN")", R"(main_context = 0, source = "QNN")")),
      AllOf(HasSubstr("'a' (EPContext, main_context 0) shares the binary of a main context"),
            HasSubstr("the model has none of 'QNN'")));
  // Another provider's binary does not help.
  EXPECT_THAT(error(three(R"(ep_cache_context = "bytes", source = "OpenVINOExecutionProvider")",
                          R"(main_context = 0, source = "QNN")")),
              HasSubstr("'b' (EPContext, main_context 0)"));
}

// Each partition has a binary of its own.
TEST_F(Context, OneBinaryOfSeveralIsMissing) {
  const Model model = three(R"(embed_mode = 0, ep_cache_context = "a.bin", source = "QNN")",
                            R"(embed_mode = 0, ep_cache_context = "b.bin", source = "QNN")");
  ASSERT_TRUE(write_file_atomic(dir_.path() / "a.bin", "bytes").ok());
  EXPECT_THAT(
      error(model),
      HasSubstr("the binary 'b.bin' of the compiled partition 'b' (EPContext) is not there"));
  ASSERT_TRUE(write_file_atomic(dir_.path() / "b.bin", "bytes").ok());
  EXPECT_EQ(error(model), "no error");
  EXPECT_EQ(context_partitions(model)[1].file, "b.bin");
  // One within, one beside.
  EXPECT_THAT(error(three(R"(ep_cache_context = "", source = "QNN")",
                          R"(embed_mode = 0, ep_cache_context = "b.bin", source = "QNN")")),
              HasSubstr("partition 'a' (EPContext) is without its binary"));
}

TEST_F(Context, OnlySomeExecutorsCompile) {
  EXPECT_TRUE(compiles_contexts("qnn:soc=43"));
  EXPECT_TRUE(compiles_contexts("provider:simnpu"));
  EXPECT_FALSE(compiles_contexts("cpu"));
  const Model model = compiled("bytes", 1);
  const Status status = compile_context_for("cpu", model, dir_.path() / "out.onnx", true, {});
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("executor 'cpu' compiles no contexts"));
}

TEST_F(Context, WhatIsWrittenAppearsWhole) {
  const fs::path out = dir_.path() / "out.onnx";
  // A session that fails leaves nothing.
  const Status failed = write_context(
      [&](const auto& entries) -> Status {
        EXPECT_EQ(entries.at("ep.context_embed_mode"), "0");
        return Internal("no");
      },
      out, false, "P");
  EXPECT_EQ(failed.message(), "no");
  EXPECT_TRUE(fs::is_empty(dir_.path()));
  // One that writes nothing took nothing.
  EXPECT_THAT(write_context([](const auto&) { return Status(); }, out, true, "P").message(),
              HasSubstr("P compiled nothing"));
  const auto write = [](const auto& entries) -> Status {
    const fs::path file = entries.at("ep.context_file_path");
    TENONNX_RETURN_IF_ERROR(write_file_atomic(file.parent_path() / "out_1.bin", "b"));
    return write_file_atomic(file, "m");
  };
  ASSERT_TRUE(write_context(write, out, false, "P").ok());
  EXPECT_TRUE(fs::exists(out));
  EXPECT_TRUE(fs::exists(dir_.path() / "out_1.bin"));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_.path()), fs::directory_iterator()), 2);
  EXPECT_EQ(write_context(write, out, false, "P").code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace tenonnx
