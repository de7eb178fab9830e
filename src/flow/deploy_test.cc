// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What deploy and verify do with wrong input, and without images. The whole story, with images:
// tests/deploy.
#include "flow/deploy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "base/npy.h"
#include "base/temporary_directory.h"
#include "contract/contract.h"
#include "device/device.h"
#include "eval/shapes.h"
#include "flow/result_text.h"
#include "flow/verify.h"
#include "model/parse_for_test.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const fs::path kModel =
    fs::path(TENONNX_TEST_SOURCE_DIR) / "examples" / "models" / "shapes_deimv2.onnx";

class Deploy : public ::testing::Test {
 protected:
  DeployOptions options() const {
    DeployOptions out;
    out.model = kModel;
    out.out = package_;
    out.random_inputs = 1;
    return out;
  }
  std::string error(const DeployOptions& options) const {
    const auto result = deploy(options);
    // Nothing half-written, whatever went wrong.
    if (!result.ok() && !fs::exists(package_)) {
      for (const auto& entry : fs::directory_iterator(temporary_.path()))
        EXPECT_FALSE(entry.is_directory() && entry.path().filename() != "devices") << entry.path();
    }
    return result.ok() ? "" : result.status().message();
  }

  TemporaryDirectory temporary_;
  const fs::path package_ = temporary_.path() / "pkg";
};

// A directory of device files, searched first while this lives.
class Devices {
 public:
  explicit Devices(const fs::path& parent) : directory_(parent / "devices") {
    fs::create_directory(directory_);
    EXPECT_EQ(::setenv("TENONNX_DEVICES", directory_.c_str(), 1), 0);
  }
  ~Devices() {
    ::unsetenv("TENONNX_DEVICES");
    fs::remove_all(directory_);
  }
  const fs::path& directory() const { return directory_; }
  void target(const std::string& name, const std::string& roles) const {
    std::ofstream(directory_ / (name + ".json"))
        << R"({"schema_version": 1, "name": ")" << name
        << R"(", "title": "t", "description": "d", "source": "a test", "checked": "2026-11", )"
        << R"("roles": )" << roles << "}";
  }

 private:
  fs::path directory_;
};

TEST_F(Deploy, WithoutImagesIsInconclusiveAndSaysSo) {
  const auto result = deploy(options());
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->manifest.verdict, "INCONCLUSIVE") << describe(*result);
  EXPECT_THAT(describe(*result), HasSubstr("random values"));
  EXPECT_EQ(result->cut_origin, "cut by the contract");
  const auto package = read_package(package_);
  ASSERT_TRUE(package.ok()) << package.status().message();
  EXPECT_EQ(package->verdict, "INCONCLUSIVE");
  ASSERT_EQ(package->stages.size(), 4u);
  for (const StageStatus& stage : package->stages) EXPECT_EQ(stage.status, "ok") << stage.stage;
  ASSERT_EQ(package->boundaries.size(), 3u);
  EXPECT_EQ(package->boundaries[2].first, "feature_2");
  EXPECT_THAT(package->boundaries[2].second, HasSubstr("pan_blocks.1"));
  // No path of this machine is in what is written.
  for (const char* file : {"manifest.json", "evidence/checks.json", "evidence/images.json",
                           "evidence/detections.json"})
    EXPECT_EQ(read_file(package_ / file)->find(temporary_.path().string()), std::string::npos)
        << file;

  // The same again gives the same bytes.
  const std::string before = *sha256_file(package_ / "manifest.json");
  DeployOptions again = options();
  EXPECT_THAT(error(again), HasSubstr("--force"));
  again.force = true;
  ASSERT_TRUE(deploy(again).ok());
  EXPECT_EQ(*sha256_file(package_ / "manifest.json"), before);
  // What is not of the package is not replaced with it.
  std::ofstream(package_ / "thesis.txt") << "precious";
  EXPECT_THAT(error(again), HasSubstr("holds 'thesis.txt', which is not part of a package"));
  EXPECT_TRUE(fs::exists(package_ / "thesis.txt"));
}

// x and Erf(x / sqrt 2) of a GELU cross: the runtime computes the whole GELU as one operator where
// it can see all of it, and its parts one by one where it cannot.
TEST_F(Deploy, AFusionThatCrossesTheCutIsNamed) {
  const Model gelu = parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1,3,8,16] images) => (float[1,96,4] logits, float[1,96,4] pred_boxes)
<float four = {4}, float two = {2}, float root = {1.4142135}, float one = {1}, float half = {0.5},
 int64[3] rows = {1, 96, 4}> {
  y = Mul (images, four)
  x = Sub (y, two)
  scaled = Div (x, root)
  erf = Erf (scaled)
  sum = Add (erf, one)
  product = Mul (x, sum)
  gelu = Mul (product, half)
  logits = Reshape (gelu, rows)
  pred_boxes = Sigmoid (logits)
})");
  const fs::path path = temporary_.path() / "gelu.onnx";
  ASSERT_TRUE(gelu.save(path).ok());
  std::ofstream(temporary_.path() / "gelu.contract.json") << R"({
    "schema_version": 1,
    "image": {"name": "images", "dtype": "float32", "shape": [1, 3, 8, 16], "layout": "NCHW",
              "color": "RGB", "resize": "pillow_bilinear", "fit": "stretch",
              "normalized_by": "pipeline", "scale": 0.00392156862745098, "mean": [0, 0, 0],
              "std": [1, 1, 1], "range": [0, 1]},
    "outputs": {"kind": "raw", "logits": "logits", "pred_boxes": "pred_boxes", "top_k": 10},
    "classes": ["a", "b", "c", "d"], "cut": ["x", "erf"]})";
  DeployOptions o = options();
  o.model = path;
  const auto result = deploy(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->proof.fusion_crosses) << describe(*result);
  EXPECT_TRUE(result->proof.cut_is_right) << describe(*result);
  EXPECT_THAT(describe(*result), HasSubstr("a fusion crosses the cut"));
  bool found = false;
  for (const Check& check : result->proof.checks) {
    if (check.name != "cut: logits: max abs error, default level") continue;
    found = true;
    EXPECT_GT(check.value, 0);
    EXPECT_EQ(check.verdict, Verdict::kPass) << to_text(check);
    EXPECT_THAT(check.limit.origin, HasSubstr("two optimisation levels"));
  }
  EXPECT_TRUE(found) << describe(*result);
  EXPECT_EQ(result->manifest.summary["fusion_crosses_cut"], true);
}

// Boxes in 0..1 that ignore the size: with everything else equal on both sides the verdict must not
// be PASS, neither here nor from the evidence alone.
TEST_F(Deploy, AnOrderOfTheSizeThatCannotBeProvedIsInconclusive) {
  const Model model = parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1,3,8,8] images, int64[1,2] orig_target_sizes)
  => (int64[1,4] labels, float[1,4,4] boxes, float[1,4] scores)
<float[1,4,4] corners = {0,0,1,1, 2,2,4,4, 5,5,7,7, 1,4,3,8}, float[1,4] score = {0.9,0.8,0.7,0.6},
 int64[1,4] label = {0,1,0,1}, float zero = {0}, int64 no = {0}> {
  mean = ReduceMean <keepdims = 0> (images)
  nothing = Mul (mean, zero)
  boxes = Add (corners, nothing)
  scores = Add (score, nothing)
  sizes = ReduceSum <keepdims = 0> (orig_target_sizes)
  nought = Mul (sizes, no)
  labels = Add (label, nought)
})");
  const fs::path path = temporary_.path() / "fixed.onnx";
  ASSERT_TRUE(model.save(path).ok());
  std::ofstream(temporary_.path() / "fixed.contract.json") << R"({
    "schema_version": 1,
    "image": {"name": "images", "dtype": "float32", "shape": [1, 3, 8, 8], "layout": "NCHW",
              "color": "RGB", "resize": "pillow_bilinear", "fit": "stretch",
              "normalized_by": "pipeline", "scale": 0.00392156862745098, "mean": [0, 0, 0],
              "std": [1, 1, 1], "range": [0, 1]},
    "size": {"name": "orig_target_sizes", "dtype": "int64", "order": "width_height"},
    "outputs": {"kind": "detections", "labels": "labels", "boxes": "boxes", "scores": "scores"},
    "classes": ["cat", "dog"]})";
  const fs::path images = temporary_.path() / "images";
  fs::create_directory(images);
  for (const char* name : {"a.ppm", "b.ppm"})
    std::ofstream(images / name, std::ios::binary) << "P6 8 8 255\n" << std::string(192, 'x');
  DeployOptions o = options();
  o.model = path;
  o.images = images;
  const auto result = deploy(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->manifest.verdict, "INCONCLUSIVE") << describe(*result);
  EXPECT_THAT(describe(*result), AllOf(HasSubstr("INCONCLUSIVE: order of 'orig_target_sizes': "),
                                       HasSubstr("could not be proved")));
  for (const Check& check : result->proof.checks) {
    const bool is_order = check.name == "order of 'orig_target_sizes'";
    EXPECT_EQ(check.verdict, is_order ? Verdict::kInconclusive : Verdict::kPass) << to_text(check);
  }
  VerifyOptions v;
  v.package = package_;
  v.images = images;
  const auto verified = verify(v);
  ASSERT_TRUE(verified.ok()) << verified.status().message();
  EXPECT_EQ(verified->verdict, Verdict::kInconclusive) << describe(*verified);
}

// The files were written and the graph level holds, but no session starts: a FAIL with its stage,
// not a package that looks done. The device's file goes away between the check of the target and
// the session.
TEST_F(Deploy, AnExecutorThatDoesNotStartIsAFailedStage) {
  const Devices devices(temporary_.path());
  devices.target("broken", R"({"encoder": "sim:fleeting", "default": "cpu"})");
  const fs::path fleeting = devices.directory() / "fleeting.json";
  Json device = *read_json_file(find_device("htp-v73")->file);
  device["name"] = "fleeting";
  ASSERT_TRUE(write_json_file(fleeting, device).ok());
  DeployOptions o = options();
  o.target = "broken";
  o.progress = [&](std::string_view step, std::int64_t, std::int64_t) {
    if (step == "load references") fs::remove(fleeting);
  };
  const auto result = deploy(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const auto package = read_package(package_);
  ASSERT_TRUE(package.ok()) << package.status().message();
  EXPECT_EQ(package->verdict, "FAIL");
  std::map<std::string, std::string> stages;
  for (const StageStatus& stage : package->stages) stages[stage.stage] = stage.status;
  EXPECT_EQ(stages["export"], "ok");
  EXPECT_EQ(stages["runtime_init"], "failed");
  EXPECT_EQ(stages["forward"], "not run");
  EXPECT_THAT(describe(*result), HasSubstr("fleeting"));
}

TEST_F(Deploy, ATargetWhoseExecutorDoesNotExistIsRefused) {
  const Devices devices(temporary_.path());
  DeployOptions o = options();
  for (const std::string address : {"tpu", "sim:none", "sim", "sim:sim-htp", "cpu:1", ""}) {
    devices.target("wrong", R"({"encoder": "cpu", "decoder": ")" + address + R"("})");
    o.target = "wrong";
    const std::string message = error(o);
    EXPECT_FALSE(fs::exists(package_));
    EXPECT_THAT(message, HasSubstr("wrong.json")) << address;
    if (address.empty()) continue;  // refused by the reader of device files
    EXPECT_THAT(message, AllOf(HasSubstr("target 'wrong'"), HasSubstr("role 'decoder'"),
                               HasSubstr("'" + address + "', which does not exist"),
                               HasSubstr("there are cpu, sim:NAME")));
  }
}

TEST_F(Deploy, RefusesWhatCannotBeRight) {
  DeployOptions o = options();
  o.target = "nowhere";
  EXPECT_THAT(error(o), AllOf(HasSubstr("nowhere"), HasSubstr("sim-htp")));
  o = options();
  o.target = "htp-v73";
  EXPECT_THAT(error(o), AllOf(HasSubstr("'htp-v73' is a device without roles, not a target"),
                              HasSubstr("as one of 'cpu', 'qcs9075', 'sim-htp'")));
  o = options();
  o.model = temporary_.path() / "no.onnx";
  EXPECT_THAT(error(o), HasSubstr("no.onnx"));
  o = options();
  o.images = temporary_.path() / "no-images";
  EXPECT_THAT(error(o), HasSubstr("no-images"));
  o = options();
  o.labels = "annotations.json";
  EXPECT_THAT(error(o), HasSubstr("need the images"));
  o = options();
  o.cut = "no_such_tensor";
  EXPECT_THAT(error(o), AllOf(HasSubstr("cut by --cut"), HasSubstr("no_such_tensor")));
  o = options();  // one of three features: the others go around it
  o.cut = "/model/model/encoder/pan_blocks.1/conv2/activation/Mul_output_0";
  EXPECT_THAT(error(o), HasSubstr("cut by --cut"));
}

TEST_F(Deploy, AContractThatContradictsTheGraphIsRefused) {
  fs::copy_file(kModel, temporary_.path() / "m.onnx");
  std::string text = *read_file(kModel.parent_path() / "shapes_deimv2.contract.json");
  const std::string from = "160, 160";
  text.replace(text.find(from), from.size(), "320, 320");
  std::ofstream(temporary_.path() / "m.contract.json") << text;
  DeployOptions o = options();
  o.model = temporary_.path() / "m.onnx";
  EXPECT_THAT(error(o), AllOf(HasSubstr("m.contract.json"), HasSubstr("320")));
}

TEST_F(Deploy, WithoutAContractItIsGuessedAndTheGraphStaysWhole) {
  fs::copy_file(kModel, temporary_.path() / "m.onnx");
  DeployOptions o = options();
  o.model = temporary_.path() / "m.onnx";
  const auto result = deploy(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->contract_origin, "guessed from the graph");
  EXPECT_THAT(result->cut_origin, HasSubstr("nothing names a cut"));
  ASSERT_EQ(result->manifest.segments.size(), 1u);
  EXPECT_EQ(result->manifest.segments[0].name, "model");
  EXPECT_THAT(describe(*result),
              AllOf(HasSubstr("THE CONTRACT IS A GUESS"),
                    HasSubstr("input 'images' is RGB / 255 without mean and std")));
  EXPECT_THAT(to_json(*result)["notes"].dump(), HasSubstr("contract guessed: input 'images'"));
}

// The automatic cut is the one that the example's contract names.
TEST_F(Deploy, TheCutMayBeFoundAutomatically) {
  DeployOptions o = options();
  o.cut = "auto";
  const auto result = deploy(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->cut_origin, "automatic cut (features)");
  EXPECT_THAT(describe(*result), HasSubstr("behind it 12 sampling sites, 3 selections"));
  const auto contract = read_contract(kModel.parent_path() / "shapes_deimv2.contract.json");
  ASSERT_TRUE(contract.ok());
  ASSERT_EQ(result->boundaries.size(), contract->cut.size());
  for (std::size_t i = 0; i < contract->cut.size(); ++i)
    EXPECT_EQ(result->boundaries[i].source, contract->cut[i]);
  EXPECT_EQ(result->tried.size(), 1u);
}

// Nobody names a cut, and float16 breaks the decoder of this model: the cut saves it.
TEST_F(Deploy, WhereTheWholeGraphFailsTheAutomaticCutIsTried) {
  fs::copy_file(kModel.parent_path() / "shapes_deimv2_fragile.onnx", temporary_.path() / "m.onnx");
  const fs::path images = temporary_.path() / "images";
  fs::create_directory(images);
  for (const std::uint64_t seed : {1'000'000, 1'000'001}) {
    const ShapesImage image = make_shapes_image(seed);
    std::ofstream(images / (std::to_string(seed) + ".ppm"), std::ios::binary)
        << "P6 160 160 255\n"
        << std::string(image.rgb.begin(), image.rgb.end());
  }
  DeployOptions o = options();
  o.model = temporary_.path() / "m.onnx";
  o.target = "sim-htp";
  o.images = images;
  const auto result = deploy(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_EQ(result->tried.size(), 2u) << describe(*result);
  EXPECT_EQ(result->tried[0].origin, "whole graph (nothing names a cut)");
  EXPECT_EQ(result->tried[0].verdict, "FAIL");
  EXPECT_FALSE(result->tried[0].failed.empty());
  EXPECT_NE(result->tried[1].verdict, "FAIL") << describe(*result);
  EXPECT_TRUE(result->tried[1].failed.empty()) << describe(*result);
  EXPECT_EQ(result->boundaries.size(), 3u);
  EXPECT_THAT(describe(*result),
              AllOf(HasSubstr("tried: whole graph (nothing names a cut): FAIL ("),
                    HasSubstr("tried: automatic cut (features): ")));
  const auto package = read_package(package_);
  ASSERT_TRUE(package.ok()) << package.status().message();
  ASSERT_EQ(package->segments.size(), 2u);
  EXPECT_FALSE(fs::exists(package_ / "model.onnx"));
  const Json tried = package->settings["tried"];
  ASSERT_EQ(tried.size(), 2u);
  EXPECT_EQ(tried[0]["verdict"], "FAIL");

  // Who asks for the whole graph gets it, and its failure.
  o.cut = "none";
  o.force = true;
  const auto whole = deploy(o);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_EQ(whole->manifest.verdict, "FAIL");
  EXPECT_EQ(whole->tried.size(), 1u);
  EXPECT_TRUE(whole->boundaries.empty());
}

TEST_F(Deploy, LabelsBesideTheImagesAreLeftOutWhereAGuessedContractNamesNoClasses) {
  const fs::path images = temporary_.path() / "images";
  fs::create_directory(images);
  std::ofstream(images / "a.ppm", std::ios::binary) << "P6 8 8 255\n" << std::string(192, 'x');
  const Json labels = {
      {"images", {{{"id", 1}, {"file_name", "a.ppm"}, {"width", 8}, {"height", 8}}}},
      {"annotations", Json::array()},
      {"categories", {{{"id", 0}, {"name", "circle"}}}}};
  ASSERT_TRUE(write_json_file(images / "annotations.json", labels).ok());
  fs::copy_file(kModel, temporary_.path() / "m.onnx");
  DeployOptions o = options();
  o.model = temporary_.path() / "m.onnx";
  o.images = images;
  const auto result = deploy(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_THAT(describe(*result), HasSubstr("no average precision: the contract names no classes"));
}

TEST_F(Deploy, LabelsOfOtherImagesAreAnErrorWhereTheyWereGiven) {
  const fs::path images = temporary_.path() / "images";
  fs::create_directory(images);
  std::ofstream(images / "a.ppm", std::ios::binary) << "P6 8 8 255\n" << std::string(192, 'x');
  const Json labels = {
      {"images", {{{"id", 1}, {"file_name", "b.ppm"}, {"width", 8}, {"height", 8}}}},
      {"annotations", Json::array()},
      {"categories",
       {{{"id", 0}, {"name", "circle"}},
        {{"id", 1}, {"name", "rectangle"}},
        {{"id", 2}, {"name", "triangle"}},
        {{"id", 3}, {"name", "cross"}}}}};
  ASSERT_TRUE(write_json_file(images / "annotations.json", labels).ok());
  DeployOptions o = options();
  o.images = images;
  o.labels = images / "annotations.json";
  const auto refused = deploy(o);
  ASSERT_FALSE(refused.ok());
  EXPECT_FALSE(fs::exists(package_));
  EXPECT_THAT(refused.status().message(),
              AllOf(HasSubstr("annotations.json' (--labels) name none of the"),
                    HasSubstr("first 'a.ppm'"), HasSubstr("--labels none")));
  // Found beside the images they are a note; switched off they are nothing.
  o.labels.clear();
  const auto found = deploy(o);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_THAT(describe(*found), HasSubstr("the labels do not name 1 of 1 image,"));
  o.labels = "none";
  o.force = true;
  const auto none = deploy(o);
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_THAT(describe(*none), Not(HasSubstr("the labels")));
}

TEST_F(Deploy, VerifyRefusesDamageVersionsAndWrongInputs) {
  ASSERT_TRUE(deploy(options()).ok());
  VerifyOptions v;
  v.package = package_;
  auto result = verify(v);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->verdict, Verdict::kInconclusive);

  const auto with_tensors = [&](TensorMap tensors) {
    v.tensors = temporary_.path() / "inputs.npz";
    EXPECT_TRUE(write_npz(v.tensors, tensors).ok());
    const auto verified = verify(v);
    return verified.ok() ? "" : verified.status().message();
  };
  const Tensor size = Tensor::from<std::int64_t>(DType::kInt64, {1, 2}, {160, 160});
  const Tensor image(DType::kFloat32, {1, 3, 160, 160});
  EXPECT_EQ(with_tensors({{"images", image}, {"orig_target_sizes", size}}), "");
  EXPECT_THAT(with_tensors({{"images", Tensor(DType::kFloat64, {1, 3, 160, 160})},
                            {"orig_target_sizes", size}}),
              AllOf(HasSubstr("images"), HasSubstr("float64"), HasSubstr("float32")));
  EXPECT_THAT(with_tensors({{"images", Tensor(DType::kFloat32, {1, 3, 80, 160})},
                            {"orig_target_sizes", size}}),
              AllOf(HasSubstr("[1,3,80,160]"), HasSubstr("[1,3,160,160]")));
  EXPECT_THAT(with_tensors({{"images", Tensor(DType::kFloat32, {1, 160, 160, 3})},
                            {"orig_target_sizes", size}}),
              AllOf(HasSubstr("[1,160,160,3]"), HasSubstr("NHWC")));
  EXPECT_THAT(with_tensors({{"images", image}}), HasSubstr("orig_target_sizes"));
  v.tensors.clear();

  // Another runtime: every file is right, and the manifest says that it was proved with that one.
  Json json = *read_json_file(package_ / "manifest.json");
  json["versions"]["onnxruntime"] = "1.28.0";
  ASSERT_TRUE(write_json_file(package_ / "manifest.json", json).ok());
  result = verify(v);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.status().message(),
              AllOf(HasSubstr("onnxruntime"), HasSubstr("proved with 1.28.0"),
                    HasSubstr("--allow-version-mismatch")));
  v.allow_version_mismatch = true;
  result = verify(v);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->version_differences.size(), 1u);

  std::string bytes = *read_file(package_ / "decoder.onnx");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  std::ofstream(package_ / "decoder.onnx", std::ios::binary) << bytes;
  result = verify(v);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.status().message(), HasSubstr("'decoder.onnx' has SHA-256"));
}

TEST_F(Deploy, VerifyRefusesAContractThatIsNotTheFiles) {
  ASSERT_TRUE(deploy(options()).ok());
  const Json original = *read_json_file(package_ / "manifest.json");
  const auto verify_with = [&](const char* pointer, const Json& value) {
    Json json = original;
    json[Json::json_pointer(pointer)] = value;
    EXPECT_TRUE(write_json_file(package_ / "manifest.json", json).ok());
    VerifyOptions v;
    v.package = package_;
    const auto result = verify(v);
    return result.ok() ? "" : result.status().message();
  };
  EXPECT_THAT(
      verify_with("/contract/image/shape", {1, 3, 320, 320}),
      AllOf(HasSubstr("manifest.json: contract"), HasSubstr("'images' is [1,3,320,320] (NCHW)"),
            HasSubstr("takes [1,3,160,160]")));
  EXPECT_THAT(verify_with("/contract/size/dtype", "int32"),
              AllOf(HasSubstr("'orig_target_sizes'"), HasSubstr("int64")));
  EXPECT_THAT(verify_with("/contract/outputs/boxes", "corners"), HasSubstr("'corners'"));
}

TEST_F(Deploy, ASimulatedSegmentIsSaidToBeOne) {
  DeployResult result;
  result.manifest.segments = {{"encoder", "encoder.onnx", "sim:toy", {}, {}},
                              {"decoder", "decoder.onnx", "cpu", {}, {}}};
  result.proof.placement = {{"encoder", "sim:toy", {{"CPUExecutionProvider", 458}}, ""},
                            {"decoder", "cpu", {{"CPUExecutionProvider", 7}}, ""}};
  EXPECT_THAT(describe(result), AllOf(HasSubstr(" 458 nodes simulated on CPUExecutionProvider"),
                                      HasSubstr(" 7 nodes on CPUExecutionProvider")));
}

TEST(TaskText, NamesTheClasses) {
  Proof proof;
  proof.classes = {"circle", "rectangle"};
  proof.task.images = 2;
  proof.task.labels = {0, 1};
  EXPECT_THAT(task_text(proof), HasSubstr("of classes circle, rectangle\n"));
  EXPECT_THAT(summary_of(proof, "")["coverage"].dump(), HasSubstr("circle, rectangle"));
}

TEST(TaskText, LabelsWithoutABoxHaveNoPrecision) {
  Proof proof;
  proof.precision.emplace();
  proof.precision->reference.ap = proof.precision->candidate.ap = -1;
  EXPECT_THAT(task_text(proof), HasSubstr("mAP is not defined: the labels have no box"));
  proof.precision->reference.ap = proof.precision->candidate.ap = 0.5;
  EXPECT_THAT(task_text(proof), HasSubstr("mAP 0.500 whole, 0.500 package"));
}

}  // namespace
}  // namespace tenonnx
