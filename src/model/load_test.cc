// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <fmt/printf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <fstream>

#include "base/log.h"
#include "base/temporary_directory.h"
#include "model/graph.h"
#include "model/model.h"
#include "model/parse_for_test.h"
#include "model/tensor_proto.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kSmall = R"(
  <ir_version: 10, opset_import: ["" : 20]>
  g (float[1,4] x) => (float[1,2] y)
  <float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[2] b = {0.5, -0.5}>
  {
    h = MatMul (x, w)
    y = Add (h, b)
  })";

fs::path example() {
  return fs::path(TENONNX_TEST_SOURCE_DIR) / "examples/models/shapes_deimv2.onnx";
}

Status status_of(onnx::ModelProto proto) {
  return Model::from_proto(std::move(proto), {}, "m.onnx").status();
}

Status status_of(const std::string& text) { return status_of(parse_proto(text)); }

TEST(Load, TheExample) {
  const auto model = Model::load(example());
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->proto().graph().node_size(), 3548);
  const auto inputs = model->inputs();
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[0].name, "images");
  EXPECT_EQ(inputs[0].dtype, DType::kFloat32);
  EXPECT_EQ(inputs[1].name, "orig_target_sizes");
  EXPECT_EQ(inputs[1].dtype, DType::kInt64);
  EXPECT_EQ(model->outputs().size(), 3u);
  EXPECT_EQ(model->sha256(), *sha256_file(example()));
  EXPECT_EQ(model->source_hashes().front().first, "shapes_deimv2.onnx");
}

TEST(Load, FromBytesIsTheSame) {
  const auto bytes = read_file(example());
  const auto model = Model::from_bytes(*bytes, {}, "bytes");
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->sha256(), sha256_hex(*bytes));
  EXPECT_EQ(*model->serialize(), *bytes);
}

TEST(Load, FilesThatAreNoModels) {
  const TemporaryDirectory dir;
  const auto load = [&](std::string_view bytes) {
    fs::remove(dir.path() / "m.onnx");
    std::ofstream(dir.path() / "m.onnx", std::ios::binary) << bytes;
    return Model::load(dir.path() / "m.onnx").status();
  };
  EXPECT_EQ(Model::load(dir.path() / "none.onnx").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(Model::load(dir.path()).status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(load("").message(), HasSubstr("m.onnx: the file is empty"));
  EXPECT_THAT(load("<!DOCTYPE html><html>").message(), HasSubstr("not an ONNX model"));
  const std::string good = parse_proto(kSmall).SerializeAsString();
  EXPECT_TRUE(load(good).ok());
  for (std::size_t n = 0; n < good.size(); ++n) {
    const auto cut = Model::from_bytes(good.substr(0, n), {}, "cut");
    ASSERT_FALSE(cut.ok()) << n;
    EXPECT_EQ(cut.status().code(), StatusCode::kDataLoss) << n << cut.status().message();
  }
}

TEST(Load, AProtobufOver2GBIsRefusedWithoutReadingIt) {
  const TemporaryDirectory dir;
  std::ofstream(dir.path() / "big.onnx") << "x";
  fs::resize_file(dir.path() / "big.onnx", (std::uintmax_t{1} << 31) + 5);
  const Status status = Model::load(dir.path() / "big.onnx").status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("at most 2 GB"));
  EXPECT_THAT(status.message(), HasSubstr("external data"));
}

TEST(Load, VersionsBeyondOnnxRuntime) {
  onnx::ModelProto proto = parse_proto(kSmall);
  proto.set_ir_version(13);
  proto.mutable_opset_import(0)->set_version(26);
  EXPECT_TRUE(status_of(proto).ok());
  proto.set_ir_version(14);
  EXPECT_EQ(status_of(proto).code(), StatusCode::kUnsupported);
  EXPECT_THAT(status_of(proto).message(), HasSubstr("m.onnx: IR version 14 is newer than 13"));
  proto.set_ir_version(13);
  proto.mutable_opset_import(0)->set_version(27);
  EXPECT_THAT(status_of(proto).message(), HasSubstr("opset 27 is newer than 26"));
  // Other domains have their own numbers.
  auto* import = proto.add_opset_import();
  import->set_domain("com.acme");
  import->set_version(1000);
  proto.mutable_opset_import(0)->set_version(20);
  EXPECT_TRUE(status_of(proto).ok());
  proto.mutable_opset_import(1)->set_domain("ai.onnx");
  EXPECT_THAT(status_of(proto).message(), HasSubstr("'ai.onnx' is imported twice"));
  proto.clear_opset_import();
  EXPECT_THAT(status_of(proto).message(), HasSubstr("no opset"));
}

TEST(Load, DanglingInputsAreNamed) {
  EXPECT_EQ(status_of(R"(<ir_version: 10, opset_import: ["" : 20]>
      g (float[1] x) => (float[1] y) { [sum] y = Add (x, lost) })")
                .message(),
            "m.onnx: Add 'sum' uses 'lost', which no node before it makes and no input or "
            "initializer is");
  EXPECT_THAT(status_of(R"(<ir_version: 10, opset_import: ["" : 20]>
      g (float[1] x) => (float[1] y) { z = Relu (x) })")
                  .message(),
              HasSubstr("nothing makes the graph output 'y'"));
  // In a body, too; and what the body makes is not seen outside.
  EXPECT_THAT(status_of(R"(<ir_version: 10, opset_import: ["" : 20]>
      g (bool c, float[1] x) => (float[1] y) {
        [branch] y = If (c) <then_branch = t () => (float[1] a) { a = Relu (lost) },
                    else_branch = e () => (float[1] b) { b = Relu (x) }>
      })")
                  .message(),
              HasSubstr("If 'branch': Relu (makes 'a') uses 'lost'"));
  EXPECT_THAT(status_of(R"(<ir_version: 10, opset_import: ["" : 20]>
      g (bool c, float[1] x) => (float[1] z) {
        y = If (c) <then_branch = t () => (float[1] a) { a = Relu (x) },
                    else_branch = e () => (float[1] b) { b = Relu (x) }>
        z = Relu (a)
      })")
                  .message(),
              HasSubstr("uses 'a'"));
}

TEST(Load, TwoProducersAreNamed) {
  EXPECT_EQ(status_of(R"(<ir_version: 10, opset_import: ["" : 20]>
      g (float[1] x) => (float[1] y) { [one] y = Relu (x) [two] y = Abs (x) })")
                .message(),
            "m.onnx: two definitions of tensor 'y': Relu 'one' and Abs 'two'");
  onnx::ModelProto proto = parse_proto(kSmall);
  *proto.mutable_graph()->add_initializer() = proto.graph().initializer(0);
  EXPECT_THAT(status_of(proto).message(), HasSubstr("two initializers are named 'w'"));
  proto = parse_proto(kSmall);
  *proto.mutable_graph()->add_output() = proto.graph().output(0);
  EXPECT_THAT(status_of(proto).message(), HasSubstr("two graph outputs are named 'y'"));
}

TEST(Load, CyclesAreNamed) {
  EXPECT_EQ(status_of(R"(<ir_version: 10, opset_import: ["" : 20]>
      g (float[1] x) => (float[1] y) {
        [first] a = Add (x, c)  [second] b = Relu (a)  [third] c = Abs (b)  [last] y = Neg (c) })")
                .message(),
            "m.onnx: the graph has a cycle: Relu 'second' -> Abs 'third' -> Add 'first' -> Relu "
            "'second'");
  // Through a body.
  EXPECT_THAT(status_of(R"(<ir_version: 10, opset_import: ["" : 20]>
      g (bool c) => (float[1] y) {
        [branch] x = If (c) <then_branch = t () => (float[1] a) { a = Relu (y) },
                    else_branch = e () => (float[1] b) { b = Abs (y) }>
        [back] y = Neg (x)
      })")
                  .message(),
              HasSubstr("the graph has a cycle"));
}

TEST(Load, UnsortedNodesAreSortedWithAWarning) {
  std::string warning;
  set_log_sink([&](LogLevel, std::string_view text) { warning += text; });
  const auto model = Model::from_proto(parse_proto(R"(<ir_version: 10, opset_import: ["" : 20]>
      g (float[1] x) => (float[1] y) {
        [p] k = Abs (x)  [late] y = Add (b, k)  [second] b = Neg (a)  [first] a = Relu (x) })"));
  set_log_sink({});
  ASSERT_TRUE(model.ok()) << model.status().message();
  std::vector<std::string> names;
  for (const auto& node : model->proto().graph().node()) names.push_back(node.name());
  EXPECT_THAT(names, ::testing::ElementsAre("p", "first", "second", "late"));
  EXPECT_THAT(warning, HasSubstr("first Add 'late'"));
}

TEST(Load, FunctionsThatCallThemselves) {
  const char* kText = R"(<ir_version: 10, opset_import: ["" : 20, "f" : 1]>
      g (float[1] x) => (float[1] y) { y = f.a (x) }
      <domain: "f", opset_import: ["" : 20, "f" : 1]> a (x) => (y) { y = f.b (x) }
      <domain: "f", opset_import: ["" : 20, "f" : 1]> b (x) => (y) { y = %s (x) })";
  EXPECT_TRUE(status_of(fmt::sprintf(kText, "Relu")).ok());
  EXPECT_THAT(status_of(fmt::sprintf(kText, "f.a")).message(), HasSubstr("calls itself"));
}

TEST(Load, DataThatDoesNotFillItsShape) {
  onnx::ModelProto proto = parse_proto(kSmall);
  auto* w = proto.mutable_graph()->mutable_initializer(0);
  w->set_dims(0, 5);
  EXPECT_THAT(status_of(proto).message(),
              HasSubstr("tensor 'w': float [5,2] needs 10 values, and it has 8"));
  *w = to_tensor_proto(Tensor(DType::kFloat32, {4, 2}), "w");
  EXPECT_TRUE(status_of(proto).ok());
  w->mutable_raw_data()->pop_back();
  EXPECT_THAT(status_of(proto).message(), HasSubstr("needs 32 bytes, and its data has 31"));
  w->set_dims(0, std::int64_t{1} << 62);
  EXPECT_THAT(status_of(proto).message(), HasSubstr("impossible shape"));
  w->set_dims(0, -4);
  EXPECT_THAT(status_of(proto).message(), HasSubstr("impossible shape"));
}

TEST(Load, NodesThatAreNotAsTheirSchemaWants) {
  const auto message = [](const std::string& node) {
    return status_of(R"(<ir_version: 10, opset_import: ["" : 20, "com.acme" : 1]>
        g (float[2] x) => (float[2] y) { [n] y = )" +
                     node + " }")
        .message();
  };
  EXPECT_EQ(message("Relu (x)"), "");
  EXPECT_EQ(message("com.acme.Anything <k = 1> (x, x, x)"), "");
  EXPECT_EQ(message("SimplifiedLayerNormalization (x, x)"), "") << "ONNX Runtime's own";
  EXPECT_THAT(message("Add (x)"), HasSubstr("m.onnx: Add 'n' is not valid"));
  EXPECT_THAT(message("Relu <alpha = 1> (x)"), HasSubstr("alpha"));
  EXPECT_THAT(message("Cast (x)"), HasSubstr("'to'"));
  EXPECT_EQ(message("Split <num_outputs = 1> (x)"), "");
  EXPECT_THAT(message("Split <num_outputs = 2> (x)"), HasSubstr("num_outputs 2 and 1 outputs"));
  EXPECT_THAT(message("Upsample (x, x)"), HasSubstr("deprecated"));
  EXPECT_EQ(message("com.other.Thing (x)"),
            "m.onnx: com.other.Thing 'n' is of the domain 'com.other', which the model does not "
            "import");
}

class ExternalTest : public ::testing::Test {
 protected:
  // kSmall with `w` in w.bin at offset 4096; 32 bytes, as the shape says.
  void SetUp() override {
    proto_ = parse_proto(kSmall);
    fs::create_directory(dir_.path() / "m");
    std::ofstream(dir_.path() / "m" / "w.bin", std::ios::binary)
        << std::string(4096, '\0') << std::string(32, '\x40');
    set_external(w(), {"w.bin", 4096, 32, true});
  }
  onnx::TensorProto& w() { return *proto_.mutable_graph()->mutable_initializer(0); }
  Result<Model> load() { return Model::from_proto(proto_, dir_.path() / "m", "m.onnx"); }
  TemporaryDirectory dir_;
  onnx::ModelProto proto_;
};

TEST_F(ExternalTest, IsMappedAndNotCopied) {
  const auto model = load();
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto files = model->external_files();
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].location, "w.bin");
  const auto w = model->initializer("w");
  ASSERT_TRUE(w.ok());
  EXPECT_EQ(w->raw(), files[0].file->bytes().data() + 4096);
  EXPECT_EQ(w->data<char>()[31], '\x40');
  EXPECT_EQ(model->source_hashes().at(0).first, "w.bin");
  EXPECT_EQ(model->source_hashes().at(0).second, *sha256_file(dir_.path() / "m" / "w.bin"));
}

TEST_F(ExternalTest, MisalignedDataIsReadFromACopy) {
  set_external(w(), {"w.bin", 4095, 32, true});
  const auto w = load()->initializer("w");
  ASSERT_TRUE(w.ok());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(w->raw()) % 4, 0u);
  EXPECT_EQ(w->data<char>()[0], 0);
  EXPECT_EQ(w->data<char>()[1], '\x40');
}

TEST_F(ExternalTest, StaysInsideItsDirectory) {
  std::ofstream(dir_.path() / "secret.bin") << std::string(8192, 's');
  for (const char* location : {"../secret.bin", "/etc/passwd", "a/../../secret.bin"}) {
    set_external(w(), {location, 0, 32, true});
    const Status status = load().status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << location;
    EXPECT_THAT(status.message(), HasSubstr("m.onnx: external data of 'w': path '"));
  }
  fs::create_symlink(dir_.path() / "secret.bin", dir_.path() / "m" / "link.bin");
  set_external(w(), {"link.bin", 0, 32, true});
  EXPECT_THAT(load().status().message(), HasSubstr("symbolic link"));
}

TEST_F(ExternalTest, FilesThatAreMissingOrTooShort) {
  set_external(w(), {"none.bin", 0, 32, true});
  EXPECT_EQ(load().status().code(), StatusCode::kNotFound);
  EXPECT_THAT(load().status().message(), HasSubstr("none.bin"));
  set_external(w(), {"w.bin", 4097, 32, true});
  EXPECT_THAT(load().status().message(),
              HasSubstr("32 bytes at offset 4097 reach beyond the 4128 bytes of 'w.bin'"));
  set_external(w(), {"w.bin", ~std::uint64_t{0}, 32, true});
  EXPECT_EQ(load().status().code(), StatusCode::kDataLoss);
  set_external(w(), {"w.bin", 4096, 31, true});
  EXPECT_THAT(load().status().message(), HasSubstr("has length 31"));
}

}  // namespace
}  // namespace tenonnx
