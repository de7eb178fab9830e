// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What verify asks of a package's compiled segments before it loads them, on contexts that are made
// by hand: no vendor's library is needed.
#include "flow/context_segments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <filesystem>
#include <string>
#include <utility>

#include "base/files.h"
#include "base/status.h"
#include "base/temporary_directory.h"
#include "flow/deploy.h"
#include "flow/verify.h"
#include "model/parse_for_test.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kPartitions = R"(<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
  g (float[4] x, float[4] z) => (float[4] y, float[4] w) {
    a, b = com.microsoft.EPContext <embed_mode = 1, ep_cache_context = "bytes", source = "QNN"> (x, z)
    y, w = com.microsoft.EPContext <main_context = 0, source = "QNN"> (a, b) })";

class ContextSegments : public ::testing::Test {
 protected:
  ContextSegments() {
    segment_.name = "encoder";
    segment_.file = "encoder_ctx.onnx";
    segment_.executor = "qnn:soc=43";
    write(kPartitions);
    auto record = record_contexts(dir_.path(), {segment_});
    EXPECT_TRUE(record.ok()) << record.status().message();
    settings_["contexts"] = std::move(*record);
  }
  void write(const std::string& text) {
    EXPECT_TRUE(parse_model(text).save(dir_.path() / segment_.file).ok());
  }
  // After a change of the model's text.
  std::string error(const std::string& from, const std::string& to) {
    std::string text = kPartitions;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos);
    write(text.replace(at, from.size(), to));
    return check();
  }
  std::string check() const {
    const Status status = check_recorded_contexts(dir_.path(), {segment_}, settings_);
    return status.ok() ? "no error" : status.message();
  }
  TemporaryDirectory dir_;
  Segment segment_;
  Json settings_ = Json::object();
};

TEST_F(ContextSegments, WhatWasRecordedIsThere) {
  EXPECT_EQ(check(), "no error");
  ASSERT_EQ(settings_["contexts"]["encoder"].size(), 2U);
  EXPECT_EQ(settings_["contexts"]["encoder"][0]["main"], true);
  EXPECT_EQ(settings_["contexts"]["encoder"][1]["main"], false);
  EXPECT_EQ(settings_["contexts"]["encoder"][1]["inputs"], Json({"a", "b"}));
}

TEST_F(ContextSegments, AnotherOrderOfInputsOrOutputs) {
  EXPECT_THAT(error("(a, b)", "(b, a)"),
              AllOf(HasSubstr("segment 'encoder'"),
                    HasSubstr("the inputs of the compiled partition \"y\" are 'b', 'a', in the "
                              "manifest 'a', 'b'")));
  EXPECT_THAT(error("(x, z)", "(z, x)"), HasSubstr("the inputs of the compiled partition \"a\""));
  // A partition without a name goes by its first output.
  EXPECT_THAT(error("y, w =", "w, y ="), HasSubstr("partition \"y\" (EPContext) is missing"));
}

TEST_F(ContextSegments, OnePartitionOfTwoIsLacking) {
  EXPECT_THAT(error("y, w = com.microsoft.EPContext <main_context = 0, source = \"QNN\"> (a, b)",
                    "y = Relu (a) w = Relu (b)"),
              HasSubstr("partition \"y\" (EPContext) is missing; 1 of 2 are there"));
  // Taken out, and nothing put into its place: the model does not load.
  onnx::ModelProto proto = parse_proto(kPartitions);
  proto.mutable_graph()->mutable_node()->DeleteSubrange(0, 1);
  ASSERT_TRUE(write_file_atomic(dir_.path() / segment_.file, proto.SerializeAsString()).ok());
  EXPECT_THAT(check(), AllOf(HasSubstr("segment 'encoder'"), HasSubstr("uses 'a'")));
}

TEST_F(ContextSegments, APartitionThatNobodyRecorded) {
  settings_["contexts"]["encoder"].erase(1);
  EXPECT_THAT(check(), HasSubstr("partition \"y\" (EPContext) is not in the manifest"));
}

TEST_F(ContextSegments, ARecordOfSomethingElse) {
  const Json recorded = settings_["contexts"]["encoder"];
  settings_["contexts"]["encoder"][0]["main"] = false;
  EXPECT_THAT(check(), AllOf(HasSubstr("the compiled partition \"a\" is recorded as"),
                             HasSubstr("in the file it is")));
  settings_["contexts"]["encoder"] = recorded;
  settings_["contexts"]["encoder"].push_back(recorded[0]);
  EXPECT_THAT(check(), HasSubstr("records a compiled partition twice: 2 of 3 are there"));
}

TEST_F(ContextSegments, NoPartitionAtAll) {
  write(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x, float[4] z) => (float[4] y, float[4] w) { y = Relu (x) w = Relu (z) })");
  EXPECT_THAT(check(), HasSubstr("'encoder_ctx.onnx' holds no compiled partition (EPContext)"));
  settings_.erase("contexts");
  EXPECT_THAT(check(), HasSubstr("holds no compiled partition"));
}

TEST_F(ContextSegments, ARecordThatIsNone) {
  settings_.erase("contexts");
  EXPECT_THAT(check(), HasSubstr("does not record its compiled partitions (settings/contexts)"));
  settings_["contexts"] = "x";
  EXPECT_THAT(check(), HasSubstr("does not record its compiled partitions"));
  settings_["contexts"] = {{"encoder", 3}};
  EXPECT_THAT(check(), HasSubstr("is no list"));
  settings_["contexts"] = {{"encoder", Json::array({Json::object()})}};
  EXPECT_THAT(check(), HasSubstr("lacks name, inputs or outputs"));
}

TEST_F(ContextSegments, OfPlainSegmentsNothingIsAsked) {
  segment_.file = "encoder.onnx";
  EXPECT_THAT(check(), HasSubstr("partitions of 'encoder', which is no compiled segment"));
  settings_.erase("contexts");
  EXPECT_EQ(check(), "no error");
}

// The whole way, without the vendor's library: a package whose encoder is exchanged for a context
// that is made by hand, hashed as if it had been packaged so.
class VerifiedContext : public ::testing::Test {
 protected:
  VerifiedContext() {
    DeployOptions options;
    options.model =
        fs::path(TENONNX_TEST_SOURCE_DIR) / "examples" / "models" / "shapes_deimv2.onnx";
    options.out = package_;
    options.random_inputs = 1;
    const auto result = deploy(options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    manifest_ = *read_json_file(package_ / "manifest.json");
    fs::remove(package_ / "encoder.onnx");
    Json& encoder = manifest_["segments"][0];
    encoder["file"] = "encoder_ctx.onnx";
    encoder["executor"] = "qnn:soc=43,library=/not/there";
    std::erase_if(manifest_["files"].get_ref<Json::array_t&>(),
                  [](const Json& file) { return file["path"] == "encoder.onnx"; });
    manifest_["settings"]["contexts"] = {
        {"encoder",
         {{{"name", "p0"}, {"main", true}, {"inputs", {"images"}}, {"outputs", {"feature_0", "t"}}},
          {{"name", "p1"},
           {"main", false},
           {"inputs", {"t"}},
           {"outputs", {"feature_1", "feature_2"}}}}}};
  }
  // The error of verify where the partitions are these.
  std::string error(const std::string& first, const std::string& second) {
    std::string text = R"(<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
      g (float[1,3,160,160] images) => (float[1,64,20,20] feature_0, float[1,64,10,10] feature_1,
                                        float[1,64,5,5] feature_2) { )" +
                       first + second + "}";
    onnx::ModelProto proto = parse_proto(text);
    for (int i = 0; i < proto.graph().node_size(); ++i)
      proto.mutable_graph()->mutable_node(i)->set_name("p" + std::to_string(i));
    return verified(proto);
  }
  std::string verified(const onnx::ModelProto& proto) {
    const std::string bytes = proto.SerializeAsString();
    EXPECT_TRUE(write_file_atomic(package_ / "encoder_ctx.onnx", bytes).ok());
    Json manifest = manifest_;
    manifest["files"].push_back(
        {{"path", "encoder_ctx.onnx"}, {"sha256", sha256_hex(bytes)}, {"bytes", bytes.size()}});
    EXPECT_TRUE(write_json_file(package_ / "manifest.json", manifest).ok());
    VerifyOptions options;
    options.package = package_;
    const auto result = verify(options);
    return result.ok() ? "no error" : result.status().message();
  }
  const TemporaryDirectory dir_;
  const fs::path package_ = dir_.path() / "package";
  Json manifest_;
};

constexpr const char* kMain = R"(feature_0, t = com.microsoft.EPContext <embed_mode = 1,
  ep_cache_context = "bytes", source = "QNNExecutionProvider"> (images) )";
constexpr const char* kShared = R"(feature_1, feature_2 = com.microsoft.EPContext <main_context = 0,
  source = "QNNExecutionProvider"> (t) )";

TEST_F(VerifiedContext, EveryFaultIsFound) {
  // Nothing wrong: the next thing is the vendor's library.
  EXPECT_THAT(error(kMain, kShared), AllOf(HasSubstr("segment 'encoder'"), HasSubstr("library")));
  const auto with = [](std::string text, const std::string& from, const std::string& to) {
    EXPECT_NE(text.find(from), std::string::npos);
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_THAT(error(with(kMain, "\"bytes\"", "\"\""), kShared),
              HasSubstr("'p0' (EPContext) is without its binary"));
  EXPECT_THAT(
      error(with(with(kMain, "embed_mode = 1", "embed_mode = 0"), "bytes", "encoder.bin"), kShared),
      HasSubstr(
          "the binary 'encoder.bin' of the compiled partition 'p0' (EPContext) is not there"));
  EXPECT_THAT(error(with(kMain, "embed_mode = 1", "main_context = 0"), kShared),
              HasSubstr("shares the binary of a main context, and the model has none"));
  EXPECT_THAT(
      error(kMain, with(kShared, "feature_1, feature_2", "feature_2, feature_1")),
      HasSubstr("the outputs of the compiled partition \"p1\" are 'feature_2', 'feature_1'"));
  EXPECT_THAT(error(kMain, "feature_1 = Identity (t) feature_2 = Identity (t)"),
              HasSubstr("the compiled partition \"p1\" (EPContext) is missing; 1 of 2 are there"));
  EXPECT_THAT(error("feature_0 = Identity (images)",
                    "feature_1 = Identity (images) feature_2 = Identity (images)"),
              HasSubstr("holds no compiled partition"));
}

}  // namespace
}  // namespace tenonnx
