// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Gates that are quoted by name, through the whole comparison of a small detector.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "flow/compare.h"
#include "model/parse_for_test.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

// Two detections, circle (0,0)-(8,4) and square (8,4)-(16,8) of a 16 x 8 image, whatever it shows;
// `shift` moves the boxes by a share of the image.
std::string detector(double shift) {
  return fmt::format(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,3,8,8] images, int64[1,2] orig_target_sizes)
      => (int64[1,2] labels, float[1,2,4] boxes, float[1,2] scores)
    <float[1,2,4] corners = {{0, 0, 0.5, 0.5, 0.5, 0.5, 1, 1}}, float shift = {{{}}},
     float[1,2] base = {{0.9, 0.8}}, int64[1,2] classes = {{0, 1}}, float none = {{0}},
     int64[3] row = {{1, 1, 4}}> {{
      mean = ReduceMean <keepdims = 0> (images)
      nothing = Mul (mean, none)
      scores = Add (base, nothing)
      zero = Cast <to = 7> (nothing)
      labels = Add (classes, zero)
      moved = Add (corners, shift)
      size = Cast <to = 1> (orig_target_sizes)
      twice = Concat <axis = 1> (size, size)
      pixels = Reshape (twice, row)
      boxes = Mul (moved, pixels)
    }})",
                     shift);
}

Json contract() {
  return Json::parse(R"({"schema_version": 1,
    "image": {"name": "images", "dtype": "float32", "shape": [1, 3, 8, 8], "layout": "NCHW",
      "color": "RGB", "resize": "pillow_bilinear", "fit": "stretch", "normalized_by": "pipeline",
      "scale": 0.00392156862745098, "mean": [0, 0, 0], "std": [1, 1, 1], "range": [0, 1]},
    "size": {"name": "orig_target_sizes", "dtype": "int64", "order": "width_height"},
    "outputs": {"kind": "detections", "labels": "labels", "boxes": "boxes", "scores": "scores"},
    "classes": ["circle", "square"]})");
}

Json annotation(int id, int image, int category, std::vector<double> bbox) {
  const double area = bbox[2] * bbox[3];
  return {{"id", id},     {"image_id", image}, {"category_id", category},
          {"bbox", bbox}, {"area", area},      {"iscrowd", 0}};
}

class CompareGates : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(images_);
    Json images = Json::array(), annotations = Json::array();
    for (int i = 0; i < 2; ++i) {
      const std::string name = fmt::format("{}.ppm", i);
      std::ofstream(images_ / name, std::ios::binary)
          << "P6 16 8 255\n"
          << std::string(16 * 8 * 3, static_cast<char>('a' + i));
      images.push_back({{"id", i}, {"file_name", name}, {"width", 16}, {"height", 8}});
      annotations.push_back(annotation(2 * i + 1, i, 1, {0, 0, 8, 4}));
      annotations.push_back(annotation(2 * i + 2, i, 2, {8, 4, 8, 4}));
    }
    labels_ = {{"images", images},
               {"annotations", annotations},
               {"categories", {{{"id", 1}, {"name", "circle"}}, {{"id", 2}, {"name", "square"}}}}};
    write("images/annotations.json", labels_);
    write("a.contract.json", contract());
  }
  void write(const std::string& name, const Json& json) const {
    ASSERT_TRUE(write_json_file(temporary_.path() / name, json).ok());
  }
  fs::path save(const std::string& name, double shift) const {
    fs::path path = temporary_.path() / name;
    EXPECT_TRUE(parse_model(detector(shift).c_str()).save(path).ok());
    return path;
  }
  CompareOptions options(double shift) const {
    CompareOptions out;
    out.reference = save("a.onnx", 0);
    out.candidate = save("b.onnx", shift);
    out.images = images_;
    out.gates = {"map"};
    out.cache = "none";
    out.load.intra_op_threads = 1;
    return out;
  }
  static CompareResult run(const CompareOptions& options) {
    auto result = compare(options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? std::move(*result) : CompareResult();
  }
  static Check check_of(const CompareResult& result, const std::string& name) {
    for (const Check& check : result.checks)
      if (check.name == name) return check;
    ADD_FAILURE() << "no check " << name;
    return {};
  }
  static std::string error(const CompareOptions& options) {
    return compare(options).status().message();
  }
  TemporaryDirectory temporary_;
  const fs::path images_ = temporary_.path() / "images";
  Json labels_;
};

TEST_F(CompareGates, MapIsTheDifferenceOfTheAveragePrecision) {
  // A model that finds all has an average precision of 1.
  const CompareResult same = run(options(0));
  EXPECT_EQ(same.verdict, Verdict::kPass) << describe(same);
  const Check equal = check_of(same, "mAP difference");
  EXPECT_EQ(equal.value, 0);
  EXPECT_THAT(equal.note, HasSubstr("1.0000 reference, 1.0000 candidate, over 2 labelled images"));

  // An eighth of the image: both sides of a box are 1/2, so that the boxes overlap in 9/16 of their
  // area and the IoU is 9 / 23 = 0.39, below every threshold.
  const CompareResult moved = run(options(0.125));
  EXPECT_EQ(moved.verdict, Verdict::kFail);
  EXPECT_EQ(check_of(moved, "mAP difference").value, 1);

  // A fortieth: the boxes share (19/20)^2 of their area and the IoU is 0.9025 / 1.0975 = 0.822: it
  // counts at 0.5 to 0.8, seven of ten thresholds.
  const CompareResult nudged = run(options(0.025));
  ASSERT_TRUE(nudged.precision.has_value());
  EXPECT_DOUBLE_EQ(nudged.precision->figures.candidate.ap, 0.7);
  const Json json = to_json(nudged);
  EXPECT_EQ(json["average_precision"]["images"], 2);
  EXPECT_DOUBLE_EQ(json["average_precision"]["candidate"]["ap"], 0.7);
  EXPECT_DOUBLE_EQ(json["average_precision"]["reference"]["ap"], 1);
}

TEST_F(CompareGates, MapTakesAnOutputUnderItsNewName) {
  CompareOptions o = options(0);
  std::string renamed = detector(0);
  for (std::size_t at; (at = renamed.find("boxes")) != std::string::npos;)
    renamed.replace(at, 5, "rects");
  ASSERT_TRUE(parse_model(renamed.c_str()).save(o.candidate).ok());
  write("b.passes.json", {{"renamed", {{"boxes", "rects"}}}, {"removed", Json::object()}});
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kPass) << describe(result);
}

TEST_F(CompareGates, MapOfOneImageOrOfNoObjectProvesNothing) {
  CompareOptions o = options(0);
  o.max_images = 1;
  const Check one = check_of(run(o), "mAP difference");
  EXPECT_EQ(one.verdict, Verdict::kInconclusive);
  EXPECT_THAT(one.note, HasSubstr("at least 2 are needed"));
  o = options(0.125);
  o.max_images = 1;  // one counter-example is enough
  EXPECT_EQ(check_of(run(o), "mAP difference").verdict, Verdict::kFail);
  labels_["annotations"] = Json::array();
  write("images/annotations.json", labels_);
  const Check none = check_of(run(options(0)), "mAP difference");
  EXPECT_EQ(none.verdict, Verdict::kInconclusive);
  EXPECT_THAT(none.note, HasSubstr("no object is annotated"));
}

TEST_F(CompareGates, ACandidateOfNanHasDetectedNothing) {
  CompareOptions o = options(0);
  std::string broken = detector(0);
  const std::string right = "boxes = Mul (moved, pixels)";
  broken.replace(broken.find(right), right.size(),
                 "nan = Div (none, none)\n      boxes = Mul (moved, nan)");
  ASSERT_TRUE(parse_model(broken.c_str()).save(o.candidate).ok());
  const CompareResult result = run(o);
  EXPECT_EQ(check_of(result, "mAP difference").value, 1);
  EXPECT_THAT(result.notes, Contains(HasSubstr("do not decode and count as no detections")));
}

TEST_F(CompareGates, MapSaysWhatIsMissing) {
  CompareOptions o = options(0);
  o.images.clear();
  EXPECT_THAT(error(o), HasSubstr("give --images DIR, with an annotations.json"));
  o = options(0);
  o.labels = "none";
  EXPECT_THAT(error(o), AllOf(HasSubstr("no 'annotations.json' in"), HasSubstr("--labels FILE")));
  fs::rename(images_ / "annotations.json", temporary_.path() / "elsewhere.json");
  o.labels.clear();
  EXPECT_THAT(error(o), HasSubstr("no 'annotations.json' in"));
  o.labels = temporary_.path() / "elsewhere.json";
  EXPECT_EQ(run(o).verdict, Verdict::kPass);
  o.gates = {"psnr"};
  EXPECT_THAT(error(o), HasSubstr("which '--gate map' asks for"));
  o.gates = {"map"};

  Json other = labels_;
  other["images"][0]["file_name"] = "x.ppm";
  other["images"][1]["file_name"] = "y.ppm";
  write("elsewhere.json", other);
  EXPECT_THAT(error(o), AllOf(HasSubstr("name none of the 2 images"), HasSubstr("first '0.ppm'")));
  other = labels_;
  other["categories"][1]["name"] = "hexagon";
  write("elsewhere.json", other);
  EXPECT_THAT(error(o), AllOf(HasSubstr("hexagon"), HasSubstr("elsewhere.json")));
  write("elsewhere.json", labels_);

  Json nameless = contract();
  nameless.erase("classes");
  write("a.contract.json", nameless);
  EXPECT_THAT(error(o), HasSubstr("the contract names no classes: add \"classes\""));
  fs::remove(temporary_.path() / "a.contract.json");
  EXPECT_THAT(error(o), AllOf(HasSubstr("needs a contract"), HasSubstr("write 'a.contract.json'")));
}

const ComparedTensor& at(const CompareResult& result, const std::string& name) {
  static const ComparedTensor none;
  for (const ComparedTensor& tensor : result.tensors)
    if (tensor.plan.tensor.name == name) return tensor;
  ADD_FAILURE() << "no tensor " << name;
  return none;
}

TEST_F(CompareGates, PsnrIsOverTheRangeThatTheContractDeclares) {
  CompareOptions o = options(0.0078125);  // 2^-7, of 16 and of 8 pixels: 1/8 and 1/16
  o.gates = {"psnr"};
  const CompareResult result = run(o);
  const Psnr boxes = *at(result, "boxes").figures->psnr;
  // Mean square error (2^-6 + 2^-8) / 2 under a peak of 16 = 2^4.
  EXPECT_NEAR(boxes.db, 10 * std::log10(256 / ((0x1p-6 + 0x1p-8) / 2)), 1e-9);
  EXPECT_EQ(boxes.peak, 16);
  EXPECT_THAT(boxes.origin, HasSubstr("0..16 pixels of the image, by 'orig_target_sizes'"));
  EXPECT_EQ(at(result, "scores").figures->psnr->peak, 1);
  EXPECT_FALSE(at(result, "labels").figures->psnr.has_value());
  EXPECT_FALSE(at(result, "pixels").figures->psnr.has_value());
  EXPECT_THAT(check_of(result, "boxes: PSNR").limit.origin,
              HasSubstr("45 dB over the declared range 16: boxes are 0..16 pixels"));
  EXPECT_THAT(describe(result), HasSubstr("scores are 0..1 (contract)"));
  EXPECT_EQ(to_json(result)["tensors"].back()["figures"].contains("psnr"), true);
  fs::remove(temporary_.path() / "a.contract.json");  // guessed: nothing is declared
  const CompareResult guessed = run(o);
  EXPECT_FALSE(at(guessed, "boxes").figures->psnr.has_value());
  EXPECT_THAT(check_of(guessed, "boxes: PSNR").limit.origin, HasSubstr("the reference's width"));
}

}  // namespace
}  // namespace tenonnx
