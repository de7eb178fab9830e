// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "contract/contract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "contract/range.h"
#include "model/parse_for_test.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kContract = R"({
  "schema_version": 1,
  "image": {"name": "images", "dtype": "float32", "shape": [1, 3, 48, 64], "layout": "NCHW",
            "color": "BGR", "resize": "opencv_linear", "fit": "letterbox",
            "letterbox_fill": [1, 2, 3], "normalized_by": "pipeline", "scale": 0.00392156862745098,
            "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "range": [-2.118, 2.64]},
  "size": {"name": "orig_target_sizes", "dtype": "int64", "order": "height_width"},
  "outputs": {"kind": "detections", "labels": "l", "boxes": "b", "scores": "s",
              "tensors": [{"name": "l", "dtype": "int64", "shape": [1, -1]}]},
  "classes": ["circle", "cross"],
  "cut": ["/encoder/a", "/encoder/b"]
})";

Json contract_json() { return *parse_json(kContract, "test"); }

std::string error_after(const std::function<void(Json&)>& change) {
  Json json = contract_json();
  change(json);
  const auto contract = contract_from_json(JsonReader(json, "c.json"));
  return contract.ok() ? "" : contract.status().message();
}

TEST(ContractFile, EveryFieldIsReadAndWritten) {
  const Json json = contract_json();
  const auto contract = contract_from_json(JsonReader(json, "c.json"));
  ASSERT_TRUE(contract.ok()) << contract.status().message();
  EXPECT_EQ(contract->image.color, ColorOrder::kBgr);
  EXPECT_EQ(contract->image.resize, ResizeKind::kOpencvLinear);
  EXPECT_EQ(contract->image.fit, ResizeFit::kLetterbox);
  EXPECT_EQ(contract->image.letterbox_fill[2], 3);
  EXPECT_EQ(contract->image.mean[1], 0.456);
  EXPECT_EQ(contract->image.range[0], -2.118);
  ASSERT_TRUE(contract->size.has_value());
  EXPECT_EQ(contract->size->order, SizeOrder::kHeightWidth);
  EXPECT_EQ(contract->outputs.boxes, "b");
  ASSERT_EQ(contract->outputs.tensors.size(), 1U);
  EXPECT_EQ(contract->outputs.tensors[0].shape, (Shape{1, -1}));
  EXPECT_EQ(contract->classes[1], "cross");
  EXPECT_EQ(contract->cut[1], "/encoder/b");
  // JSON compares every field.
  EXPECT_EQ(dump_json(to_json(*contract)), dump_json(json));
}

TEST(ContractFile, RawOutputsComeBackAsTheyWere) {
  Json json = contract_json();
  json["outputs"] = {{"kind", "raw"}, {"logits", "lo"}, {"pred_boxes", "pb"}, {"top_k", 50}};
  const auto contract = contract_from_json(JsonReader(json, "c.json"));
  ASSERT_TRUE(contract.ok()) << contract.status().message();
  EXPECT_EQ(contract->outputs.kind, OutputKind::kRaw);
  EXPECT_EQ(dump_json(to_json(*contract)), dump_json(json));
}

TEST(ContractFile, ErrorsNameThePathAndWhatIsAllowed) {
  EXPECT_THAT(error_after([](Json& j) { j["image"]["color"] = "GRB"; }),
              AllOf(HasSubstr("c.json: /image/color"), HasSubstr("\"RGB\", \"BGR\"")));
  EXPECT_THAT(error_after([](Json& j) { j["image"]["resize"] = "bicubic"; }),
              HasSubstr("pillow_bilinear"));
  EXPECT_THAT(error_after([](Json& j) { j["image"]["dtype"] = "float31"; }),
              HasSubstr("/image/dtype"));
  EXPECT_THAT(error_after([](Json& j) { j["image"]["dtype"] = "int64"; }),
              HasSubstr("float32, float16 or uint8"));
  EXPECT_THAT(error_after([](Json& j) { j["image"]["meen"] = {0, 0, 0}; }), HasSubstr("meen"));
  EXPECT_THAT(error_after([](Json& j) { j["image"]["std"] = {1, 0, 1}; }), HasSubstr("above 0"));
  EXPECT_THAT(error_after([](Json& j) { j["image"]["scale"] = 0; }), HasSubstr("/image/scale"));
  EXPECT_THAT(error_after([](Json& j) {
                j["image"]["letterbox_fill"] = {0, 0, 256};
              }),
              HasSubstr("0 to 255"));
  EXPECT_THAT(error_after([](Json& j) { j["image"].erase("shape"); }), HasSubstr("shape"));
  EXPECT_THAT(error_after([](Json& j) {
                j["image"]["shape"] = {1, 3, 0, 64};
              }),
              HasSubstr("at least 1"));
  EXPECT_THAT(error_after([](Json& j) { j["size"]["dtype"] = "int8"; }), HasSubstr("/size/dtype"));
  EXPECT_THAT(error_after([](Json& j) { j["outputs"]["logits"] = "x"; }),
              HasSubstr("belongs to kind \"raw\""));
  EXPECT_THAT(error_after([](Json& j) { j["schema_version"] = 2; }),
              AllOf(HasSubstr("/schema_version"), HasSubstr("reads 1")));
  EXPECT_THAT(error_after([](Json& j) { j["classes"] = {1}; }), HasSubstr("/classes/0"));
}

TEST(ContractFile, AShapeOfTheOtherLayoutIsCalledThat) {
  EXPECT_THAT(error_after([](Json& j) {
                j["image"]["shape"] = {1, 48, 64, 3};
              }),
              AllOf(HasSubstr("[1,48,64,3]"), HasSubstr("set \"layout\": \"NHWC\"")));
}

TEST(ContractFile, ADoubleNormalisationContradictsTheRange) {
  // The model normalizes, yet the range is that of normalized values.
  EXPECT_THAT(error_after([](Json& j) { j["image"]["normalized_by"] = "model"; }),
              AllOf(HasSubstr("/image/range"), HasSubstr("[0, 1]"), HasSubstr("normalized_by")));
  EXPECT_THAT(error_after([](Json& j) {
                j["image"]["normalized_by"] = "model";
                j["image"]["range"] = {0, 1};
              }),
              IsEmpty());
  // Pixels 0..255 where mean and std are meant for 0..1.
  EXPECT_THAT(error_after([](Json& j) { j["image"]["scale"] = 1; }), HasSubstr("/image/range"));
}

TEST(ContractFile, AnUint8ImageHoldsPixels) {
  EXPECT_THAT(error_after([](Json& j) { j["image"]["dtype"] = "uint8"; }),
              HasSubstr("\"scale\": 1"));
}

TEST(ContractFile, RangeFollowsFromScaleMeanAndStd) {
  ImageInput image;
  EXPECT_EQ(implied_range(image), (std::array<double, 2>{0, 1}));
  image.mean = {0.5, 0.5, 0.25};
  image.std = {0.5, 0.25, 0.5};
  EXPECT_EQ(implied_range(image), (std::array<double, 2>{-2, 2}));
  image.normalized_by = NormalizedBy::kModel;
  image.scale = 1;
  EXPECT_EQ(implied_range(image), (std::array<double, 2>{0, 255}));
}

TEST(ContractFile, LiesBesideTheModel) {
  TemporaryDirectory folder;
  const auto model = folder.path() / "a.onnx";
  EXPECT_FALSE(find_contract(model).has_value());
  std::ofstream(folder.path() / "contract.json") << kContract;
  EXPECT_EQ(find_contract(model), folder.path() / "contract.json");
  std::ofstream(folder.path() / "a.contract.json") << kContract;
  EXPECT_EQ(find_contract(model), folder.path() / "a.contract.json");
  EXPECT_TRUE(read_contract(*find_contract(model)).ok());
}

TEST(ContractFile, TheExamplesContractIsValid) {
  const auto contract = read_contract(std::string(TENONNX_TEST_SOURCE_DIR) +
                                      "/examples/models/shapes_deimv2.contract.json");
  ASSERT_TRUE(contract.ok()) << contract.status().message();
  EXPECT_EQ(contract->image.shape, (Shape{1, 3, 160, 160}));
  EXPECT_EQ(contract->classes.size(), 4U);
}

TEST(ContractFile, TheDocumentedExampleIsValid) {
  const auto text = read_file(std::string(TENONNX_TEST_SOURCE_DIR) + "/docs/reference/contract.md");
  ASSERT_TRUE(text.ok()) << text.status().message();
  const auto begin = text->find("```json\n") + 8;
  const auto json = parse_json(text->substr(begin, text->find("\n```", begin) - begin), "doc");
  ASSERT_TRUE(json.ok()) << json.status().message();
  const auto contract = contract_from_json(JsonReader(*json, "doc"));
  ASSERT_TRUE(contract.ok()) << contract.status().message();
  EXPECT_EQ(contract->cut.size(), 3U);
}

// --- Against a graph -------------------------------------------------------------------------

struct Graph {
  std::vector<TensorInfo> inputs = {{"images", DType::kFloat32, {1, 3, 48, 64}},
                                    {"orig_target_sizes", DType::kInt64, {1, 2}}};
  std::vector<TensorInfo> outputs = {{"labels", DType::kInt64, {1, 100}},
                                     {"boxes", DType::kFloat32, {1, 100, 4}},
                                     {"scores", DType::kFloat32, {1, 100}}};
};

Contract make_contract() {
  Contract contract;
  contract.image.shape = {1, 3, 48, 64};
  contract.size = SizeInput{};
  return contract;
}

std::string error_of(const Contract& contract, const Graph& graph) {
  const auto notes = check_contract(contract, graph.inputs, graph.outputs);
  return notes.ok() ? "" : notes.status().message();
}

TEST(ContractCheck, AGraphThatFits) {
  const Graph graph;
  const auto notes = check_contract(make_contract(), graph.inputs, graph.outputs);
  ASSERT_TRUE(notes.ok()) << notes.status().message();
  EXPECT_THAT(*notes, IsEmpty());
}

TEST(ContractCheck, ADynamicOutputIsANote) {
  Graph graph;
  graph.outputs[1].shape[1] = -1;
  const auto notes = check_contract(make_contract(), graph.inputs, graph.outputs);
  ASSERT_TRUE(notes.ok()) << notes.status().message();
  EXPECT_THAT(*notes, Contains(HasSubstr("'boxes'")));
}

TEST(ContractCheck, WrongNamesListWhatThereIs) {
  Contract contract = make_contract();
  contract.image.name = "image";
  EXPECT_THAT(error_of(contract, {}),
              AllOf(HasSubstr("'image'"), HasSubstr("'images' float32 [1,3,48,64]")));
  contract = make_contract();
  contract.outputs.scores = "confidence";
  EXPECT_THAT(error_of(contract, {}),
              AllOf(HasSubstr("scores names 'confidence'"), HasSubstr("'labels' int64 [1,100]")));
  contract = make_contract();
  contract.size.reset();
  EXPECT_THAT(error_of(contract, {}),
              HasSubstr("input 'orig_target_sizes' int64 [1,2] is not in the contract"));
}

TEST(ContractCheck, WrongDtypesAndShapes) {
  Graph graph;
  graph.inputs[0].dtype = DType::kUInt8;
  EXPECT_THAT(
      error_of(make_contract(), graph),
      AllOf(HasSubstr("'images' is float32, the graph takes uint8"), HasSubstr("scale is 1")));
  graph = {};
  graph.inputs[0].shape = {1, 3, 64, 64};
  EXPECT_THAT(error_of(make_contract(), graph),
              AllOf(HasSubstr("[1,3,48,64] (NCHW)"), HasSubstr("the graph takes [1,3,64,64]")));
  graph.inputs[0].shape = {1, 48, 64, 3};
  EXPECT_THAT(error_of(make_contract(), graph), HasSubstr("the graph's layout is NHWC"));
  graph = {};
  graph.inputs[1].shape = {2};
  EXPECT_THAT(error_of(make_contract(), graph), HasSubstr("a size is [1,2]"));
  graph = {};
  graph.outputs[0].dtype = DType::kFloat32;
  EXPECT_THAT(error_of(make_contract(), graph),
              AllOf(HasSubstr("'labels'"), HasSubstr("int64 or int32 is expected")));
  graph = {};
  graph.outputs[1].shape = {1, 100, 5};
  EXPECT_THAT(error_of(make_contract(), graph), HasSubstr("[1,?,4] is expected"));
  graph = {};
  graph.outputs[2].shape = {1, 99};
  EXPECT_THAT(error_of(make_contract(), graph),
              AllOf(HasSubstr("'scores' has 99 rows"), HasSubstr("'boxes' has 100")));
}

TEST(ContractCheck, Int32SizesAreConvertedOnlyWhereTheContractAsksForIt) {
  Graph graph;
  graph.inputs[1].dtype = DType::kInt32;
  EXPECT_THAT(error_of(make_contract(), graph),
              AllOf(HasSubstr("'orig_target_sizes' is int64, the graph takes int32"),
                    HasSubstr("\"dtype\": \"int32\"")));
  Contract contract = make_contract();
  contract.size->dtype = DType::kInt32;
  EXPECT_THAT(error_of(contract, graph), IsEmpty());
}

TEST(ContractCheck, StatedOutputsAndClasses) {
  Contract contract = make_contract();
  contract.outputs.tensors = {{"boxes", DType::kFloat32, {1, 300, 4}}};
  EXPECT_THAT(error_of(contract, {}),
              AllOf(HasSubstr("float32 [1,300,4]"), HasSubstr("float32 [1,100,4]")));
  contract = make_contract();
  contract.outputs.kind = OutputKind::kRaw;
  contract.classes = {"a", "b"};
  Graph graph;
  graph.outputs = {{"logits", DType::kFloat32, {1, 100, 3}},
                   {"pred_boxes", DType::kFloat32, {1, 100, 4}}};
  EXPECT_THAT(error_of(contract, graph), HasSubstr("3 classes, but the contract names 2"));
  contract.classes.push_back("c");
  EXPECT_THAT(error_of(contract, graph), IsEmpty());
}

// --- Guessing --------------------------------------------------------------------------------

constexpr const char* kDetector = R"(<ir_version: 8, opset_import: ["" : 17]>
  g (float[%s] x, int64[1,2] sz) => (int64[1,10] a, float[1,10,4] b, float[1,10] c) {
    s = Cast <to = 1> (sz)
    r = ReduceMax <keepdims = 0> (x)
    m = ReduceMax <keepdims = 0> (s)
    t = Add (r, m)
    ten = Constant <value = int64[2] {1, 10}> ()
    four = Constant <value = int64[3] {1, 10, 4}> ()
    c = Expand (t, ten)
    b = Expand (t, four)
    a = Cast <to = 7> (c)
  })";

Model detector(const std::string& shape) {
  std::string text = kDetector;
  return parse_model(text.replace(text.find("%s"), 2, shape));
}

TEST(ContractGuess, NamesKindsAndShapesComeFromTheGraph) {
  std::vector<std::string> assumed;
  const auto contract = guess_contract(detector("1,3,48,64"), assumed);
  ASSERT_TRUE(contract.ok()) << contract.status().message();
  EXPECT_EQ(contract->image.name, "x");
  EXPECT_EQ(contract->image.layout, Layout::kNchw);
  EXPECT_EQ(contract->image.shape, (Shape{1, 3, 48, 64}));
  EXPECT_EQ(contract->size->name, "sz");
  EXPECT_EQ(contract->outputs.labels, "a");
  EXPECT_EQ(contract->outputs.boxes, "b");
  EXPECT_EQ(contract->outputs.scores, "c");
  EXPECT_THAT(assumed, Contains(HasSubstr("'sz' is [width, height]")));
  EXPECT_THAT(assumed, Contains(HasSubstr("RGB / 255")));
}

TEST(ContractGuess, LayoutFollowsTheChannels) {
  std::vector<std::string> assumed;
  const auto contract = guess_contract(detector("1,48,64,3"), assumed);
  ASSERT_TRUE(contract.ok()) << contract.status().message();
  EXPECT_EQ(contract->image.layout, Layout::kNhwc);
}

TEST(ContractGuess, ADynamicSizeNeedsAnAnswer) {
  std::vector<std::string> assumed;
  const auto contract = guess_contract(detector("n,3,h,w"), assumed);
  ASSERT_FALSE(contract.ok());
  EXPECT_THAT(contract.status().message(), HasSubstr("--input-shape x=1x3x640x640"));
  EXPECT_TRUE(guess_contract(detector("n,3,48,64"), assumed).ok());  // a batch becomes 1
}

}  // namespace
}  // namespace tenonnx
