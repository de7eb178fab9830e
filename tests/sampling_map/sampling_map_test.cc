// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What each way around GridSample does to the example's average precision: 200 held-out images in
// every form, against the table of docs/how_to/replace_grid_sample.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>

#include "base/status.h"
#include "eval/average_precision.h"
#include "eval/shapes.h"
#include "model/tensor_proto.h"
#include "passes/edit.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

constexpr std::uint64_t kImages = 200;
// Of sums in another order on another machine: one detection among some 800 objects that changes
// sides at one of ten thresholds moves AP by about 1e-4. The table has four places.
constexpr double kTolerance = 1e-3;
// What a pass of class algebraic may do.
constexpr double kAlgebraic = 1e-3;
constexpr int kSites = 12;  // 4 decoder layers x 3 levels

// Rounds what GridSample takes: one more node chain before each of them.
void round_grids(Model& model,
                 const std::function<std::string(onnx::GraphProto&, int, std::string,
                                                 std::vector<onnx::NodeProto>&)>& add) {
  onnx::GraphProto& graph = *model.mutable_proto().mutable_graph();
  std::vector<onnx::NodeProto> nodes;
  for (int i = 0; i < graph.node_size(); ++i) {
    onnx::NodeProto node = graph.node(i);
    if (is_op(node, "GridSample")) node.set_input(1, add(graph, i, node.input(1), nodes));
    nodes.push_back(node);
  }
  graph.clear_node();
  for (onnx::NodeProto& node : nodes) *graph.add_node() = std::move(node);
}

// To multiples of 1 / steps.
void round_to_steps(Model& model, double steps) {
  round_grids(model, [steps](onnx::GraphProto& graph, int i, const std::string& grid,
                             std::vector<onnx::NodeProto>& nodes) {
    const std::string p = fmt::format("rounded_grid_{}_", i);
    *graph.add_initializer() = to_tensor_proto(
        Tensor::from<float>(DType::kFloat32, {}, {static_cast<float>(steps)}), p + "steps");
    nodes.push_back(make_node("Mul", {grid, p + "steps"}, {p + "scaled"}));
    nodes.push_back(make_node("Round", {p + "scaled"}, {p + "whole"}));
    nodes.push_back(make_node("Div", {p + "whole", p + "steps"}, {p + "grid"}));
    return p + "grid";
  });
}

void round_to_type(Model& model, DType type) {
  round_grids(model, [type](onnx::GraphProto&, int i, const std::string& grid,
                            std::vector<onnx::NodeProto>& nodes) {
    const std::string p = fmt::format("rounded_grid_{}_", i);
    nodes.push_back(make_node("Cast", {grid}, {p + "stored"}));
    set_attribute(nodes.back(), "to", std::int64_t{to_onnx_type(type)});
    nodes.push_back(make_node("Cast", {p + "stored"}, {p + "grid"}));
    set_attribute(nodes.back(), "to", std::int64_t{to_onnx_type(DType::kFloat32)});
    return p + "grid";
  });
}

void sample_nearest(Model& model) {
  for (auto& node : *model.mutable_proto().mutable_graph()->mutable_node())
    if (is_op(node, "GridSample")) set_attribute(node, "mode", std::string_view("nearest"));
}

// Of the same bits as the original, as the form before in the list, or of its AP.
enum class Promise { kNone, kBitwise, kAsBefore, kAlgebraic };

struct Form {
  const char* name;  // as the table has it
  Promise promise;
  std::function<void(Model&)> make;
};

std::function<void(Model&)> pass(const char* name, PassOptions options = {}) {
  return [name, options = std::move(options)](Model& model) {
    const PassOutcome outcome = run_pass(model, name, options);
    EXPECT_TRUE(outcome.skipped.empty()) << name << ": " << outcome.skipped.front().reason;
    EXPECT_EQ(op_counts(model)["GridSample"], 0) << name;
  };
}

std::vector<Form> forms() {
  return {
      {"the original", Promise::kBitwise, [](Model&) {}},
      {"`replace_grid_sample_gather`", Promise::kBitwise, pass("replace_grid_sample_gather")},
      {"`replace_grid_sample_gather`, weights=nested", Promise::kAlgebraic,
       pass("replace_grid_sample_gather", {{"weights", "nested"}})},
      {"`replace_ms_deform_attn`", Promise::kAlgebraic, pass("replace_ms_deform_attn")},
      {"`replace_grid_sample_int8_lut`, range=4", Promise::kNone,
       pass("replace_grid_sample_int8_lut", {{"range", "4"}})},
      {"`replace_grid_sample_int8_lut`, range=6", Promise::kNone,
       pass("replace_grid_sample_int8_lut", {{"range", "6"}})},
      {"`replace_grid_sample_int8_lut`, range=6, output=int8", Promise::kNone,
       pass("replace_grid_sample_int8_lut", {{"range", "6"}, {"output", "int8"}})},
      {"GridSample itself with mode nearest", Promise::kNone, sample_nearest},
      {"`replace_grid_sample_discrete`, outside=zeros", Promise::kAsBefore,
       pass("replace_grid_sample_discrete", {{"outside", "zeros"}})},
      {"`replace_grid_sample_discrete`, outside=edge", Promise::kNone,
       pass("replace_grid_sample_discrete")},
      {"`replace_grid_sample_discrete`, formula=historical", Promise::kNone,
       pass("replace_grid_sample_discrete", {{"formula", "historical"}})},
      {"grid in float16", Promise::kNone, [](Model& m) { round_to_type(m, DType::kFloat16); }},
      {"grid in bfloat16", Promise::kNone, [](Model& m) { round_to_type(m, DType::kBFloat16); }},
      {"grid in steps of 1/128", Promise::kNone, [](Model& m) { round_to_steps(m, 128); }},
      {"grid in steps of 1/64", Promise::kNone, [](Model& m) { round_to_steps(m, 64); }},
      {"grid in steps of 1/32", Promise::kNone, [](Model& m) { round_to_steps(m, 32); }},
  };
}

// float32 [1,3,160,160], RGB / 255.
Tensor image_tensor(const ShapesImage& image) {
  constexpr std::size_t kPlane = std::size_t{kShapesSize} * kShapesSize;
  Tensor tensor(DType::kFloat32, {1, 3, kShapesSize, kShapesSize});
  float* values = tensor.mutable_data<float>();
  for (std::size_t i = 0; i < kPlane; ++i)
    for (std::size_t c = 0; c < 3; ++c) values[c * kPlane + i] = image.rgb[i * 3 + c] / 255.0F;
  return tensor;
}

class SamplingMapSlow : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::uint64_t> seeds;
    for (std::uint64_t i = 0; i < kImages; ++i) seeds.push_back(kShapesHeldOutSeed + i);
    auto labels = shapes_annotations(seeds);
    ASSERT_TRUE(labels.ok());
    labels_ = std::move(labels).value();
    auto model = Model::load(std::filesystem::path(TENONNX_TEST_SOURCE_DIR) /
                             "examples/models/shapes_deimv2.onnx");
    ASSERT_TRUE(model.ok()) << model.status().message();
    original_ = std::move(model).value();
    ASSERT_GT(run_pass(original_, "fold_constants").applied, 0);
    ASSERT_EQ(op_counts(original_)["GridSample"], kSites);
  }

  // Outputs for every image.
  std::vector<TensorMap> run(const Model& model) const {
    LoadOptions options;
    options.intra_op_threads = 1;
    const auto graph = make_cpu_executor()->load(model, options);
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    std::vector<TensorMap> all;
    for (std::uint64_t i = 0; graph.ok() && i < kImages; ++i) {
      auto outputs = (*graph)->run(
          {{"images", image_tensor(make_shapes_image(kShapesHeldOutSeed + i))},
           {"orig_target_sizes",
            Tensor::from<std::int64_t>(DType::kInt64, {1, 2}, {kShapesSize, kShapesSize})}});
      EXPECT_TRUE(outputs.ok()) << outputs.status().message();
      if (!outputs.ok()) break;
      all.push_back(std::move(outputs).value());
    }
    return all;
  }

  CocoFigures figures(const std::vector<TensorMap>& all) const {
    std::vector<CocoResult> results;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Tensor &labels = all[i].at("labels"), &boxes = all[i].at("boxes"),
                   &scores = all[i].at("scores");
      for (std::int64_t k = 0; k < scores.size(); ++k) {
        const float* box = boxes.data<float>() + 4 * k;
        results.push_back({static_cast<std::int64_t>(kShapesHeldOutSeed + i),
                           labels.data<std::int64_t>()[k],
                           {box[0], box[1], double{box[2]} - box[0], double{box[3]} - box[1]},
                           scores.data<float>()[k]});
      }
    }
    const auto evaluation = CocoEvaluation::create(labels_, results);
    EXPECT_TRUE(evaluation.ok()) << evaluation.status().message();
    return evaluation.ok() ? evaluation->figures() : CocoFigures();
  }

  Model original_;
  CocoDataset labels_;
};

// "| form | AP | AP50 |" of the page, by form.
std::map<std::string, std::pair<double, double>> table_of_page() {
  std::ifstream file(std::filesystem::path(TENONNX_TEST_SOURCE_DIR) /
                     "docs/how_to/replace_grid_sample.md");
  std::map<std::string, std::pair<double, double>> rows;
  std::string line;
  while (std::getline(file, line) && !line.starts_with("| form | AP | AP50 |")) {
  }
  std::getline(file, line);  // dashes
  while (std::getline(file, line) && line.starts_with("| ")) {
    const std::size_t first = line.find(" | "), second = line.find(" | ", first + 3);
    if (second == std::string::npos) continue;
    rows[line.substr(2, first - 2)] = {std::stod(line.substr(first + 3)),
                                       std::stod(line.substr(second + 3))};
  }
  return rows;
}

TEST_F(SamplingMapSlow, TheTableOfThePageIsWhatIsMeasured) {
  const auto page = table_of_page();
  std::vector<TensorMap> original, last;
  CocoFigures reference;
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.name);
    Model model = original_.clone();
    form.make(model);
    std::vector<TensorMap> outputs = run(model);
    ASSERT_EQ(outputs.size(), kImages);
    const CocoFigures got = figures(outputs);
    if (original.empty()) {
      original = outputs;
      reference = got;
    }
    if (form.promise == Promise::kBitwise || form.promise == Promise::kAsBefore) {
      const auto& same = form.promise == Promise::kBitwise ? original : last;
      for (std::size_t i = 0; i < kImages; ++i) expect_identical(same[i], outputs[i]);
    }
    if (form.promise == Promise::kAlgebraic) {
      EXPECT_NEAR(got.ap, reference.ap, kAlgebraic);
    }
    last = std::move(outputs);
    std::cout << fmt::format("| {} | {:.4f} | {:.4f} |\n", form.name, got.ap, got.ap50);
    const auto row = page.find(form.name);
    if (row == page.end()) {
      ADD_FAILURE() << "the page has no such row";
      continue;
    }
    EXPECT_NEAR(got.ap, row->second.first, kTolerance);
    EXPECT_NEAR(got.ap50, row->second.second, kTolerance);
  }
  EXPECT_EQ(page.size(), forms().size());
}

}  // namespace
}  // namespace tenonnx
