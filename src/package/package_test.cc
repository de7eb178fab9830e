// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A package that is written reads back as it was; every way in which one can be damaged is an error
// that says what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "package/manifest.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class PackageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(root_ / "pkg" / "evidence");
    write("encoder.onnx", "not looked into: the package layer knows files only");
    write("decoder.onnx", "nor this one");
    write("evidence/checks.json", "[]\n");
  }
  fs::path package() const { return root_ / "pkg"; }

  void write(const std::string& name, std::string_view bytes) {
    std::ofstream(package() / name, std::ios::binary) << bytes;
  }

  static Manifest make_manifest() {
    Manifest m;
    m.target = "sim-htp";
    m.verdict = "PASS";
    m.contract.image.shape = {1, 3, 160, 160};
    m.contract.size = SizeInput{};
    m.contract.classes = {"circle", "cross"};
    const TensorInfo images{"images", DType::kFloat32, {1, 3, 160, 160}};
    const TensorInfo size{"orig_target_sizes", DType::kInt64, {1, 2}};
    const TensorInfo feature{"feature_0", DType::kFloat32, {1, 64, -1, 20}};
    m.segments = {{"encoder", "encoder.onnx", "sim:htp-v73", {images}, {feature}},
                  {"decoder",
                   "decoder.onnx",
                   "cpu",
                   {feature, size},
                   {{"labels", DType::kInt64, {1, 100}},
                    {"boxes", DType::kFloat32, {1, 100, 4}},
                    {"scores", DType::kFloat32, {1, 100}}}}};
    m.boundaries = {{"feature_0", "/model/encoder/Mul_output_0"}};
    m.source_model = "shapes.onnx";
    m.source_sha256 = sha256_hex("the model");
    m.inputs_sha256 = sha256_hex("the inputs");
    m.versions = {{"tenonnx", "0.1.0"}, {"onnxruntime", "1.29.0"}};
    m.settings = {{"intra_op_threads", 2}, {"spinning", false}};
    m.stages = {{"export", "ok", ""},
                {"build", "ok", ""},
                {"runtime_init", "ok", ""},
                {"forward", "ok", "20 images"}};
    m.checks = Json::array({{{"name", "scores cosine"},
                             {"value", 0.9999},
                             {"comparison", ">="},
                             {"limit", 0.99},
                             {"limit_origin", "gate of a heterogeneous chain"},
                             {"verdict", "PASS"}}});
    m.summary = {{"images", 20}};
    return m;
  }

  // Writes the package, lets `damage` change its manifest, and returns the error of reading it.
  std::string error_after(const std::function<void(Json&)>& damage) {
    Manifest manifest = make_manifest();
    fs::remove(package() / "manifest.json");
    EXPECT_TRUE(write_package(package(), manifest).ok());
    Json json = *read_json_file(package() / "manifest.json");
    damage(json);
    EXPECT_TRUE(write_json_file(package() / "manifest.json", json).ok());
    return error();
  }

  std::string error() {
    const auto read = read_package(package());
    return read.ok() ? "" : read.status().message();
  }

  TemporaryDirectory temporary_;
  const fs::path root_ = temporary_.path();
};

TEST_F(PackageTest, ReadsWhatItWrote) {
  Manifest written = make_manifest();
  ASSERT_TRUE(write_package(package(), written).ok());
  ASSERT_EQ(written.files.size(), 3u);
  EXPECT_EQ(written.files[0].path, "decoder.onnx");
  EXPECT_EQ(written.files[0].bytes, 12u);
  EXPECT_EQ(written.files[0].sha256, sha256_hex("nor this one"));
  const auto read = read_package(package());
  ASSERT_TRUE(read.ok()) << read.status().message();
  // JSON compares every field, nested ones included.
  EXPECT_EQ(dump_json(to_json(*read)), dump_json(to_json(written)));
  EXPECT_EQ(read->segments[1].inputs[0].shape, (Shape{1, 64, -1, 20}));
  EXPECT_EQ(read->contract.classes[1], "cross");
  EXPECT_EQ(read->settings["spinning"], false);
}

TEST_F(PackageTest, RefusesAChangedByte) {
  Manifest manifest = make_manifest();
  ASSERT_TRUE(write_package(package(), manifest).ok());
  write("decoder.onnx", "nor this onf");
  EXPECT_THAT(error(), AllOf(HasSubstr("'decoder.onnx' has SHA-256"),
                             HasSubstr(manifest.files[0].sha256), HasSubstr("was changed")));
  write("decoder.onnx", "nor this one, longer");
  EXPECT_THAT(error(), HasSubstr("'decoder.onnx' has 20 bytes, the manifest says 12"));
}

TEST_F(PackageTest, OnlyPackagesMayBeReplaced) {
  EXPECT_THAT(may_replace_package(package()).message(),
              HasSubstr("which is not part of a package"));
  Manifest manifest = make_manifest();
  ASSERT_TRUE(write_package(package(), manifest).ok());
  EXPECT_TRUE(may_replace_package(package()).ok());
  write("decoder.onnx", "damaged: a package all the same");
  EXPECT_TRUE(may_replace_package(package()).ok());
  write("evidence/thesis.txt", "precious");
  EXPECT_THAT(may_replace_package(package()).message(),
              HasSubstr("holds 'evidence/thesis.txt', which is not part of a package"));
  fs::remove(package() / "evidence/thesis.txt");
  // A manifest.json of something else: of a web page, say.
  write("manifest.json", R"({"name": "my page", "files": [{"path": "decoder.onnx"}]})");
  EXPECT_THAT(may_replace_package(package()).message(), HasSubstr("not part of a package"));
}

TEST_F(PackageTest, RefusesAVerdictThatItsChecksDoNotBearOut) {
  const auto check = [](Json& m) -> Json& { return m["checks"][0]; };
  EXPECT_THAT(error_after([&](Json& m) { check(m)["value"] = 0.5; }),
              HasSubstr("check 'scores cosine' says PASS, but 0.5 >= 0.99 does not hold"));
  EXPECT_THAT(error_after([&](Json& m) { check(m)["value"] = "nan"; }),
              HasSubstr("check 'scores cosine' says PASS, but nothing was measured"));
  EXPECT_THAT(error_after([&](Json& m) {
                check(m)["value"] = 0.5;
                check(m)["verdict"] = "FAIL";
              }),
              HasSubstr("the verdict is PASS, but its checks give FAIL"));
  EXPECT_THAT(error_after([&](Json& m) { m["checks"] = Json::array(); }),
              HasSubstr("the verdict is PASS, but its checks give INCONCLUSIVE"));
  EXPECT_THAT(error_after([&](Json& m) { m["stages"].erase(3); }),
              HasSubstr("the verdict is PASS, but there is no stage 'forward'"));
  EXPECT_THAT(error_after([&](Json& m) { m["stages"][3]["status"] = "not run"; }),
              HasSubstr("the verdict is PASS, but stage 'forward' was not run"));
  EXPECT_THAT(error_after([](Json& m) { m["contract"]["cut"] = {"/model/other"}; }),
              HasSubstr("the boundaries' source tensors are '/model/encoder/Mul_output_0', but the "
                        "contract's cut is '/model/other'"));
  EXPECT_THAT(error_after([&](Json& m) { m["stages"][1]["status"] = "failed"; }),
              HasSubstr("the verdict is PASS, but stage 'build' failed"));
  EXPECT_EQ(error_after([&](Json& m) {  // too few images for a FAIL
              check(m)["value"] = 0.5;
              check(m)["verdict"] = m["verdict"] = "INCONCLUSIVE";
            }),
            "");
  // A worse verdict than the checks' is no lie.
  EXPECT_EQ(error_after([&](Json& m) { m["verdict"] = "INCONCLUSIVE"; }), "");
}

TEST_F(PackageTest, RefusesAMissingFileAndAnExtraOne) {
  Manifest manifest = make_manifest();
  ASSERT_TRUE(write_package(package(), manifest).ok());
  write("evidence/more.json", "{}");
  EXPECT_THAT(error(), HasSubstr("'evidence/more.json' is in the package, but the manifest does"));
  fs::remove(package() / "evidence/more.json");
  EXPECT_EQ(error(), "");
  fs::create_symlink("/etc/passwd", package() / "link");
  EXPECT_THAT(error(), HasSubstr("'link' is in the package"));
  fs::remove(package() / "link");
  fs::remove(package() / "evidence/checks.json");
  EXPECT_THAT(error(), HasSubstr("file 'evidence/checks.json' is missing"));
}

TEST_F(PackageTest, RefusesALinkOrDirectoryInPlaceOfAFile) {
  Manifest manifest = make_manifest();
  ASSERT_TRUE(write_package(package(), manifest).ok());
  fs::rename(package() / "decoder.onnx", package() / "evidence/decoder.onnx");
  fs::create_symlink("evidence/decoder.onnx", package() / "decoder.onnx");
  EXPECT_THAT(error(), HasSubstr("'decoder.onnx' is a symbolic link, not a file"));
  fs::remove(package() / "decoder.onnx");
  fs::create_directory(package() / "decoder.onnx");
  EXPECT_THAT(error(), HasSubstr("'decoder.onnx' is a directory, not a file"));
}

TEST_F(PackageTest, RefusesPathsThatLeaveThePackage) {
  std::ofstream(root_ / "outside") << "x";
  for (const std::string path : {"../outside", "/etc/passwd", "evidence/../../outside"})
    EXPECT_THAT(error_after([&](Json& m) { m["files"][2]["path"] = path; }), HasSubstr(path + "'"))
        << path;
  EXPECT_THAT(error_after([](Json& m) { m["files"][2]["path"] = "../outside"; }),
              HasSubstr("leaves its directory by '..'"));
  EXPECT_THAT(error_after([](Json& m) { m["files"][2]["path"] = "/etc/passwd"; }),
              HasSubstr("is absolute"));
  // The segment's own path is bound to the list of files.
  EXPECT_THAT(error_after([](Json& m) { m["segments"][0]["file"] = "../outside"; }),
              HasSubstr("'../outside' of segment 'encoder' is not among the package's files"));
}

TEST_F(PackageTest, RefusesALinkThatLeavesThePackage) {
  fs::create_directory(root_ / "elsewhere");
  std::ofstream(root_ / "elsewhere/file") << "x";
  Manifest manifest = make_manifest();
  ASSERT_TRUE(write_package(package(), manifest).ok());
  fs::create_directory_symlink(root_ / "elsewhere", package() / "up");
  Json json = *read_json_file(package() / "manifest.json");
  json["files"].push_back({{"path", "up/file"}, {"sha256", sha256_hex("x")}, {"bytes", 1}});
  ASSERT_TRUE(write_json_file(package() / "manifest.json", json).ok());
  EXPECT_THAT(error(), HasSubstr("leaves its directory by a symbolic link"));
}

TEST_F(PackageTest, RefusesPathsThatAreNotPlain) {
  for (const std::string path : {"./decoder.onnx", "evidence//checks.json", "manifest.json"})
    EXPECT_THAT(error_after([&](Json& m) { m["files"][2]["path"] = path; }),
                AllOf(HasSubstr("'" + path + "'"), HasSubstr("is not the plain path")));
}

TEST_F(PackageTest, NamesBothSchemaVersions) {
  EXPECT_THAT(error_after([](Json& m) { m["schema_version"] = 7; }),
              AllOf(HasSubstr("schema_version is 7, and this tenonnx reads 1"),
                    HasSubstr("a later tenonnx wrote the package")));
  EXPECT_THAT(error_after([](Json& m) {
                m["schema_version"] = 0;
                m["unknown"] = 1;  // the version is judged first
              }),
              AllOf(HasSubstr("schema_version is 0"), HasSubstr("deploy the model again")));
  EXPECT_THAT(error_after([](Json& m) { m.erase("schema_version"); }), HasSubstr("schema_version"));
}

TEST_F(PackageTest, RefusesUnknownMissingAndWrongFields) {
  EXPECT_THAT(error_after([](Json& m) { m["verdct"] = "PASS"; }), HasSubstr("verdct"));
  EXPECT_THAT(error_after([](Json& m) { m["segments"][0]["exe"] = "cpu"; }), HasSubstr("exe"));
  EXPECT_THAT(error_after([](Json& m) { m.erase("files"); }), HasSubstr("files"));
  EXPECT_THAT(error_after([](Json& m) { m["segments"][1]["file"] = 3; }),
              HasSubstr("/segments/1/file"));
  EXPECT_THAT(error_after([](Json& m) { m["files"][0]["bytes"] = -1; }),
              HasSubstr("-1 is not a size"));
  EXPECT_THAT(error_after([](Json& m) { m["segments"][0]["inputs"][0]["dtype"] = "float33"; }),
              HasSubstr("float33"));
  EXPECT_THAT(error_after([](Json& m) { m["segments"][0]["inputs"][0]["shape"][0] = -2; }),
              HasSubstr("expected a dimension"));
  EXPECT_THAT(error_after([](Json& m) { m["checks"] = Json::object(); }),
              HasSubstr("expected an array"));
  EXPECT_THAT(error_after([](Json& m) { m["settings"] = 1; }), HasSubstr("expected an object"));
}

TEST_F(PackageTest, RefusesWordsAndHashesOfTheWrongForm) {
  EXPECT_THAT(error_after([](Json& m) { m["verdict"] = "PASSED"; }),
              HasSubstr("verdict is 'PASSED', allowed: 'PASS', 'FAIL', 'INCONCLUSIVE'"));
  EXPECT_THAT(error_after([](Json& m) { m["stages"][0]["status"] = "fine"; }),
              HasSubstr("the status of stage 'export' is 'fine'"));
  EXPECT_THAT(error_after([](Json& m) { m["stages"][1]["stage"] = "export"; }),
              HasSubstr("'export' is named twice"));
  EXPECT_THAT(error_after([](Json& m) { m["inputs_sha256"] = "abc"; }),
              HasSubstr("inputs_sha256 is 'abc', expected a SHA-256"));
  EXPECT_THAT(error_after([](Json& m) { m["files"].push_back(m["files"][0]); }),
              HasSubstr("file 'decoder.onnx' is named twice"));
}

TEST_F(PackageTest, RefusesSegmentsThatDoNotChain) {
  EXPECT_THAT(error_after([](Json& m) { m["segments"][1]["name"] = "encoder"; }),
              HasSubstr("two segments are named 'encoder'"));
  EXPECT_THAT(error_after([](Json& m) { m["segments"][1]["file"] = "encoder.onnx"; }),
              HasSubstr("another segment has the same file"));
  EXPECT_THAT(error_after([](Json& m) { m["segments"][1]["inputs"][0]["name"] = "feature_9"; }),
              HasSubstr("input 'feature_9' of segment 'decoder' is neither"));
  EXPECT_THAT(error_after([](Json& m) { std::swap(m["segments"][0], m["segments"][1]); }),
              HasSubstr("input 'feature_0' of segment 'decoder' is neither"));
  EXPECT_THAT(error_after([](Json& m) { m["segments"][1]["inputs"][0]["shape"][1] = 32; }),
              AllOf(HasSubstr("'feature_0' leaves segment 'encoder' as float32 [1,64,?,20]"),
                    HasSubstr("enters segment 'decoder' as float32 [1,32,?,20]")));
  EXPECT_THAT(error_after([](Json& m) { m["segments"][1]["inputs"][0]["dtype"] = "float16"; }),
              HasSubstr("enters segment 'decoder' as float16"));
  EXPECT_THAT(error_after([](Json& m) { m["segments"][1]["outputs"].erase(2); }),
              HasSubstr("no segment has the contract's output 'scores'"));
  EXPECT_THAT(error_after([](Json& m) { m["segments"][1]["outputs"][0]["name"] = "feature_0"; }),
              HasSubstr("'feature_0' is an output of two segments"));
  EXPECT_THAT(error_after([](Json& m) { m["boundaries"][0]["name"] = "feature_1"; }),
              HasSubstr("boundary 'feature_1' does not cross"));
  EXPECT_THAT(error_after([](Json& m) { m["segments"] = Json::array(); }),
              HasSubstr("has no segment"));
}

TEST_F(PackageTest, RefusesAHugeManifestBeforeReadingIt) {
  Manifest manifest = make_manifest();
  ASSERT_TRUE(write_package(package(), manifest).ok());
  // Sparse: takes no room on the disk, and would take 10 GB of memory if it were read.
  fs::resize_file(package() / "manifest.json", 10'000'000'000);
  EXPECT_THAT(error(), AllOf(HasSubstr("has 10000000000 bytes, allowed are 16777216"),
                             HasSubstr("it is not read")));
}

TEST_F(PackageTest, RefusesWhatIsNoPackage) {
  EXPECT_THAT(error(), HasSubstr("is not a package: it has no manifest.json"));
  EXPECT_THAT(read_package(root_ / "none").status().message(), HasSubstr("there is no package"));
  EXPECT_THAT(read_package(package() / "encoder.onnx").status().message(),
              HasSubstr("a package is a directory with a manifest.json"));
  write("manifest.json", "{\"schema_version\": 1,}");
  EXPECT_THAT(error(), HasSubstr("manifest.json"));
}

TEST_F(PackageTest, WritesNothingThatItWouldRefuse) {
  Manifest manifest = make_manifest();
  manifest.segments[1].inputs[0].name = "feature_9";
  EXPECT_FALSE(write_package(package(), manifest).ok());
  EXPECT_FALSE(fs::exists(package() / "manifest.json"));
}

}  // namespace
}  // namespace tenonnx
