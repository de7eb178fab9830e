// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/serialized_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <cstdint>
#include <numeric>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "model/check.h"
#include "model/model.h"
#include "model/parse_for_test.h"
#include "model/shared_weights.h"
#include "model/tensor_proto.h"

namespace tenonnx {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kWidth = 64, kHeight = 65;  // 16,640 bytes: just large

onnx::TensorProto weights(const std::string& name, float first) {
  std::vector<float> values(kWidth * kHeight);
  std::iota(values.begin(), values.end(), first);
  return to_tensor_proto(Tensor::from<float>(DType::kFloat32, {kHeight, kWidth}, values), name);
}

// Two large initializers, a small one between them, and what protobuf writes before and after each.
onnx::ModelProto two_large() {
  onnx::ModelProto proto = parse_proto(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[1,65] x) => (float[1,64] y)
    <float[64] b = {0}>
    {
      h = MatMul (x, w)
      s = Add (h, b)
      t = MatMul (x, v)
      y = Add (s, t)
    })");
  auto& graph = *proto.mutable_graph();
  onnx::TensorProto bias = to_tensor_proto(
      Tensor::from<float>(DType::kFloat32, {kWidth}, std::vector<float>(kWidth, 0.5f)), "b");
  graph.clear_initializer();
  *graph.add_initializer() = weights("w", 1);
  *graph.add_initializer() = bias;
  *graph.add_initializer() = weights("v", -7);
  graph.mutable_initializer(2)->set_doc_string("written behind the data");
  graph.set_doc_string("and this behind the initializers");
  proto.set_producer_name("test");
  return proto;
}

const onnx::TensorProto& initializer(const Model& model, int i) {
  return model.proto().graph().initializer(i);
}

TEST(SerializedWeights, ComeBackByteForByte) {
  const std::string bytes = two_large().SerializeAsString();
  const auto model = Model::from_bytes(bytes, {}, "m.onnx");
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_TRUE(is_shared(initializer(*model, 0)));
  EXPECT_FALSE(is_shared(initializer(*model, 1)));
  EXPECT_TRUE(is_shared(initializer(*model, 2)));
  EXPECT_LT(model->serialize_references()->size(), 2000u);
  EXPECT_EQ(model->serialize().value(), bytes);

  const TemporaryDirectory dir;
  SaveOptions keep;
  std::string hash;
  keep.keep_metadata = true;
  keep.sha256 = &hash;
  ASSERT_TRUE(model->save(dir.path() / "m.onnx", keep).ok());
  EXPECT_EQ(read_file(dir.path() / "m.onnx").value(), bytes);
  EXPECT_EQ(hash, sha256_hex(bytes));
  const auto loaded = Model::load(dir.path() / "m.onnx");
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->serialize().value(), bytes);
  EXPECT_TRUE(loaded->external_files().empty());
  EXPECT_EQ(loaded->sha256(), sha256_hex(bytes));
}

TEST(SerializedWeights, AreAlignedAndOfAllClones) {
  const auto model = Model::from_bytes(two_large().SerializeAsString(), {}, "m.onnx");
  ASSERT_TRUE(model.ok());
  for (const char* name : {"w", "v"}) {
    const Tensor value = model->initializer(name).value();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(value.raw()) % 64, 0u) << name;
    EXPECT_EQ(value.data<float>()[3], name[0] == 'w' ? 4 : -4);
    EXPECT_EQ(model->clone().initializer(name)->raw(), value.raw());
  }
}

// The tensors keep their memory when the models are gone.
TEST(SerializedWeights, OutliveTheModel) {
  std::vector<std::pair<std::string, Tensor>> shared;
  {
    const auto model = Model::from_proto(two_large());
    ASSERT_TRUE(model.ok());
    shared = model->shared_weights().value();
  }
  ASSERT_EQ(shared.size(), 2u);
  EXPECT_EQ(shared[0].first, "w");
  EXPECT_EQ(shared[1].second.data<float>()[0], -7);
}

TEST(SerializedWeights, OfAnEditedModelAreSharedAgain) {
  Model model = Model::from_proto(two_large()).value();
  const Tensor old = model.initializer("v").value();
  *model.mutable_proto().mutable_graph()->mutable_initializer(0) = weights("w", 100);
  model.share_weights();
  EXPECT_TRUE(is_shared(initializer(model, 0)));
  EXPECT_EQ(model.initializer("w")->data<float>()[0], 100);
  EXPECT_EQ(model.initializer("v")->raw(), old.raw());
  onnx::ModelProto expected = two_large();
  *expected.mutable_graph()->mutable_initializer(0) = weights("w", 100);
  EXPECT_EQ(model.serialize().value(), expected.SerializeAsString());
}

TEST(SerializedWeights, GoToADataFileByTheThresholdAlone) {
  const Model model = Model::from_proto(two_large()).value();
  const TemporaryDirectory dir;
  SaveOptions options;
  options.external_threshold = 20000;
  ASSERT_TRUE(model.save(dir.path() / "in.onnx", options).ok());
  EXPECT_FALSE(std::filesystem::exists(dir.path() / "in.onnx.data"));
  options.external_threshold = 1000;
  ASSERT_TRUE(model.save(dir.path() / "out.onnx", options).ok());
  const auto loaded = Model::load(dir.path() / "out.onnx");
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  ASSERT_EQ(loaded->external_files().size(), 1u);
  EXPECT_EQ(loaded->initializer("v")->data<float>()[0], -7);
}

// Whatever protobuf refuses is refused, and nothing else.
TEST(SerializedWeights, OfACutOrSpoiledFile) {
  const std::string bytes = two_large().SerializeAsString();
  for (std::size_t size = 0; size < bytes.size(); size += size < 400 ? 1 : 97) {
    const std::string part = bytes.substr(0, size);
    onnx::ModelProto plain;
    const auto model = Model::from_bytes(part, {}, "m.onnx");
    const bool read = !part.empty() && plain.ParseFromString(part);
    if (!read) {
      EXPECT_EQ(model.status().code(), StatusCode::kDataLoss) << size;
    }
    if (model.ok()) {
      EXPECT_EQ(model->serialize().value(), plain.SerializeAsString()) << size;
    }
  }
  for (std::size_t at = 0; at < bytes.size(); at += at < 400 ? 1 : 97) {
    std::string spoiled = bytes;
    spoiled[at] = static_cast<char>(spoiled[at] ^ 0x85);
    onnx::ModelProto plain;
    const auto model = Model::from_bytes(spoiled, {}, "m.onnx");
    const bool read = plain.ParseFromString(spoiled);
    if (!read) {
      EXPECT_FALSE(model.ok()) << at;
      continue;
    }
    const auto expected = Model::from_proto(plain);
    EXPECT_EQ(model.ok(), expected.ok()) << at << ": " << model.status().message();
    if (model.ok() && expected.ok()) {
      EXPECT_EQ(model->serialize().value(), expected->serialize().value()) << at;
    }
  }
}

TEST(SerializedWeights, ThatDoNotFillTheirShape) {
  onnx::ModelProto proto = two_large();
  proto.mutable_graph()->mutable_initializer(0)->set_dims(0, 66);
  const std::string message =
      "m.onnx: tensor 'w': float [66,64] needs 16896 bytes, and its data has 16640";
  EXPECT_THAT(Model::from_bytes(proto.SerializeAsString(), {}, "m.onnx").status().message(),
              HasSubstr(message));
  EXPECT_THAT(Model::from_proto(proto, {}, "m.onnx").status().message(), HasSubstr(message));
}

TEST(SerializedWeights, AreNotThoseThatAFileNames) {
  onnx::ModelProto proto = two_large();
  set_external(*proto.mutable_graph()->mutable_initializer(0),
               {next_shared_location(), 0, 4 * kWidth * kHeight, true});
  EXPECT_THAT(Model::from_bytes(proto.SerializeAsString(), {}, "m.onnx").status().message(),
              HasSubstr("m.onnx: external data of 'w'"));
}

TEST(SerializedWeights, OfAnotherModelAreMissed) {
  const Model model = Model::from_proto(two_large()).value();
  Model other = Model::from_proto(two_large()).value();
  *other.mutable_proto().mutable_graph()->mutable_initializer(0) = initializer(model, 0);
  EXPECT_THAT(check_model(other, "m.onnx").message(),
              HasSubstr("tensor 'w': its values are those of another model"));
}

}  // namespace
}  // namespace tenonnx
