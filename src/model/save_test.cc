// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/temporary_directory.h"
#include "model/extract.h"
#include "model/graph.h"
#include "model/model.h"
#include "model/parse_for_test.h"
#include "model/tensor_proto.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kSmall = R"(
  <ir_version: 10, opset_import: ["" : 20]>
  g (float[1,4] x) => (float[1,2] y)
  <float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[2] b = {0.5, -0.5}>
  {
    h = MatMul (x, w)
    y = Add (h, b)
  })";

// Every place where an exporter may leave something of its machine.
onnx::ModelProto with_metadata() {
  onnx::ModelProto proto = parse_proto(R"(
    <ir_version: 10, opset_import: ["" : 20, "f" : 1]>
    g (bool c, float[2] x) => (float[2] y) <float[2] w = {1, 2}>
    {
      k = Constant <value = float[2] {3, 4}> ()
      h = If (c) <then_branch = t () => (float[2] a) { a = Add (x, w) },
                  else_branch = e () => (float[2] b) { b = f.twice (k) }>
      y = Relu (h)
    }
    <domain: "f", opset_import: ["" : 20]> twice (p) => (q) { q = Add (p, p) })");
  const std::string kSecret = "/home/someone/train.py";
  const auto mark = [&](auto& message) {
    message.set_doc_string(kSecret);
    auto* entry = message.add_metadata_props();
    entry->set_key("pkg.torch.onnx.stack_trace");
    entry->set_value(kSecret);
  };
  mark(proto);
  mark(*proto.mutable_functions(0));
  mark(*proto.mutable_functions(0)->mutable_node(0));
  for_each_graph(*proto.mutable_graph(), [&](onnx::GraphProto& graph) {
    mark(graph);
    for (auto& item : *graph.mutable_input()) mark(item);
    for (auto& item : *graph.mutable_output()) mark(item);
    for (auto& item : *graph.mutable_initializer()) mark(item);
    for (auto& node : *graph.mutable_node()) {
      mark(node);
      for (auto& attribute : *node.mutable_attribute()) {
        attribute.set_doc_string(kSecret);
        if (attribute.has_t()) mark(*attribute.mutable_t());
      }
    }
  });
  return proto;
}

TEST(Save, MetadataOfTheExporterIsDroppedUnlessAskedFor) {
  const TemporaryDirectory dir;
  const auto model = Model::from_proto(with_metadata());
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_TRUE(has_metadata(model->proto()));
  ASSERT_TRUE(model->save(dir.path() / "m.onnx").ok());
  EXPECT_THAT(*read_file(dir.path() / "m.onnx"), Not(HasSubstr("someone")));
  EXPECT_FALSE(has_metadata(Model::load(dir.path() / "m.onnx")->proto()));
  ASSERT_TRUE(model->save(dir.path() / "m.onnx", {.keep_metadata = true}).ok());
  EXPECT_EQ(*read_file(dir.path() / "m.onnx"), *model->serialize());
  EXPECT_EQ(model->metadata().at("pkg.torch.onnx.stack_trace"), "/home/someone/train.py");
  // Extraction drops it as well.
  const auto part = extract(*model, {"c", "x"}, {"h"});
  ASSERT_TRUE(part.ok()) << part.status().message();
  EXPECT_THAT(*part->serialize(), Not(HasSubstr("someone")));
  const auto kept = extract(*model, {"c", "x"}, {"h"}, {.keep_metadata = true});
  EXPECT_THAT(*kept->serialize(), HasSubstr("someone"));
}

TEST(Save, LargeInitializersGoToADataFileWhenAsked) {
  const TemporaryDirectory dir;
  onnx::ModelProto proto = parse_proto(kSmall);
  const Tensor w = Tensor::from<float>(DType::kFloat32, {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  *proto.mutable_graph()->mutable_initializer(0) = to_tensor_proto(w, "w");
  auto model = Model::from_proto(proto);
  ASSERT_TRUE(model->save(dir.path() / "m.onnx", {.external_threshold = 32}).ok());
  auto back = Model::load(dir.path() / "m.onnx");
  ASSERT_TRUE(back.ok()) << back.status().message();
  ASSERT_EQ(back->external_files().size(), 1u);
  EXPECT_EQ(back->external_files()[0].location, "m.onnx.data");
  const auto read = back->initializer("w");
  EXPECT_EQ(std::string_view(read->data<char>(), 32), std::string_view(w.data<char>(), 32));
  // External stays external on the next way, under another name, over itself included.
  ASSERT_TRUE(back->save(dir.path() / "m.onnx").ok());
  ASSERT_TRUE(back->save(dir.path() / "n.onnx", {.data_file = "weights"}).ok());
  back = Model::load(dir.path() / "n.onnx");
  EXPECT_EQ(back->external_files()[0].location, "weights");
  EXPECT_EQ(back->initializer("w")->data<float>()[7], 8.0F);
  EXPECT_EQ(Model::load(dir.path() / "m.onnx")->initializer("w")->data<float>()[7], 8.0F);
  EXPECT_THAT(back->save(dir.path() / "n.onnx", {.data_file = "../w"}).message(),
              HasSubstr("plain name"));
  EXPECT_FALSE(back->save(dir.path() / "n.onnx", {.data_file = "n.onnx"}).ok());
}

TEST(Save, NothingIsLeftWhereItFails) {
  const TemporaryDirectory dir;
  const Model model = parse_model(kSmall);
  fs::create_directory(dir.path() / "m.onnx");
  EXPECT_FALSE(model.save(dir.path() / "m.onnx").ok());
  EXPECT_FALSE(model.save(dir.path() / "no" / "m.onnx").ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 1);
}

TEST(Model, ConstantsOfBothKinds) {
  const Model model = parse_model(R"(<ir_version: 10, opset_import: ["" : 20]>
    g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
      k = Constant <value = float[2] {3, 4}> ()
      i = Constant <value_ints = [5, 6]> ()
      f = Constant <value_float = 7.5> ()
      s = Constant <value_string = "no"> ()
      a = Add (x, w)
      y = Add (a, k) })");
  EXPECT_EQ(model.initializer("w")->data<float>()[1], 2.0F);
  EXPECT_EQ(model.initializer("k").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(model.constant("w")->data<float>()[0], 1.0F);
  EXPECT_EQ(model.constant("k")->data<float>()[1], 4.0F);
  EXPECT_EQ(model.constant("i")->data<std::int64_t>()[1], 6);
  EXPECT_EQ(model.constant("f")->data<float>()[0], 7.5F);
  EXPECT_TRUE(model.constant("f")->shape().empty());
  EXPECT_EQ(model.constant("s").status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(model.constant("a").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(model.opset(), 20);
  EXPECT_EQ(model.opset("com.acme"), 0);
}

TEST(Model, TensorsOutliveTheModel) {
  Tensor w;
  {
    onnx::ModelProto proto = parse_proto(kSmall);
    *proto.mutable_graph()->mutable_initializer(0) = to_tensor_proto(
        Tensor::from<float>(DType::kFloat32, {4, 2}, std::vector<float>(8, 3)), "w");
    w = *Model::from_proto(proto)->initializer("w");
  }
  EXPECT_EQ(w.data<float>()[7], 3.0F);
}

// 3 GB of weights in a sparse file: loaded, cut out and written again without ever being inlined.
// In a child, because ru_maxrss is the highest mark of a whole process.
TEST(Save, ExternalDataOf3GBIsNeverInlined) {
  const TemporaryDirectory dir;
  constexpr std::int64_t kCount = 768LL << 20;  // float32: 3 GiB
  onnx::ModelProto proto = parse_proto(R"(<ir_version: 10, opset_import: ["" : 20]>
    g (int64[1] i) => (float[1] y) <float[1] w = {0}> {
      a = Gather (w, i)
      b = Relu (a)
      y = Neg (b) })");
  auto& w = *proto.mutable_graph()->mutable_initializer(0);
  w.set_dims(0, kCount);
  set_external(w, {"w.bin", 0, 4 * kCount, true});
  std::ofstream(dir.path() / "m.onnx", std::ios::binary) << proto.SerializeAsString();
  {
    std::ofstream file(dir.path() / "w.bin", std::ios::binary);
    file.seekp(4 * (kCount - 1));
    const float last = 42;
    file.write(reinterpret_cast<const char*>(&last), 4);
  }
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto model = Model::load(dir.path() / "m.onnx");
    if (!model.ok()) ::_exit(1);
    const auto part = extract(*model, {"i"}, {"b"});
    if (!part.ok() || part->serialize()->size() > 10000) ::_exit(2);
    if (!part->save(dir.path() / "part.onnx").ok()) ::_exit(3);
    struct rusage usage {};
    ::getrusage(RUSAGE_SELF, &usage);
    // The process itself takes some 20 MB; 1/20 of the weights would already show.
    ::_exit(usage.ru_maxrss > 150 * 1024 ? 4 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  ASSERT_EQ(WEXITSTATUS(status), 0) << "1 load, 2 extract, 3 save, 4 memory";
  EXPECT_LT(fs::file_size(dir.path() / "part.onnx"), 10000u);
  const auto part = Model::load(dir.path() / "part.onnx");
  ASSERT_TRUE(part.ok()) << part.status().message();
  ASSERT_EQ(part->external_files().size(), 1u);
  EXPECT_EQ(part->external_files()[0].file->bytes().size(), 4u * kCount);
  EXPECT_EQ(part->initializer("w")->data<float>()[kCount - 1], 42.0F);
}

}  // namespace
}  // namespace tenonnx
