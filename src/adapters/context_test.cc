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

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
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
  EXPECT_EQ(error(compiled("", 1, /*main_context=*/0)), "no error") << "another node's binary";
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
