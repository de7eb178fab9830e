// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Every pass that replaces or moves GridSample, on every full-size export, proved: what each found,
// replaced and refused is printed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iostream>
#include <optional>

#include "base/status.h"
#include "exports_for_test.h"
#include "model/shapes.h"
#include "passes/edit.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;

int grid_samples(const Model& model) {
  const auto counts = op_counts(model);
  const auto it = counts.find("GridSample");
  return it == counts.end() ? 0 : it->second;
}

// The export with its shapes folded, and what the passes are told about it.
struct Folded {
  Model model;
  TensorMap inputs;
  int sites = 0;
  double range = 0;   // the largest magnitude that is sampled, on `inputs`
  std::string score;  // a tensor that has one score for each query; empty: there is none
  std::int64_t queries = 0;
};

double largest_sampled(const Model& model, const TensorMap& inputs) {
  Model with_outputs = model.clone();
  onnx::GraphProto& graph = *with_outputs.mutable_proto().mutable_graph();
  std::set<std::string> values;
  for (const auto& node : graph.node())
    if (is_op(node, "GridSample")) values.insert(node.input(0));
  for (const std::string& value : values) {
    onnx::ValueInfoProto& output = *graph.add_output();
    output.set_name(value);
    output.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  }
  const TensorMap outputs = run_on_cpu(with_outputs, inputs);
  double largest = 0;
  for (const std::string& value : values) {
    const auto it = outputs.find(value);
    if (it == outputs.end()) continue;
    for (std::int64_t i = 0; i < it->second.size(); ++i)
      largest = std::max(largest, std::abs(double{it->second.data<float>()[i]}));
  }
  return largest;
}

// The scores by which the queries were selected: of the last TopK before the first GridSample whose
// values are as many as the decoder's queries.
void find_score(Folded& folded) {
  const TensorInfos infos = infer_shapes(folded.model);
  std::string score;
  std::int64_t count = 0;
  for (const auto& node : folded.model.proto().graph().node()) {
    if (is_op(node, "TopK")) {
      const auto info = infos.find(node.output(0));
      if (info == infos.end() || !info->second.has_rank) continue;
      score = node.output(0);
      count = element_count(info->second.shape);
    }
    if (!is_op(node, "GridSample")) continue;
    const auto info = infos.find(node.input(1));
    if (info == infos.end() || !info->second.has_rank || info->second.shape[1] != count) continue;
    folded.score = score;
    folded.queries = count;
    return;
  }
}

std::optional<Folded> fold(const fs::path& path) {
  auto model = Model::load(path);
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!model.ok()) return std::nullopt;
  Folded folded;
  folded.model = std::move(model).value();
  run_pass(folded.model, "fold_constants");
  folded.sites = grid_samples(folded.model);
  if (folded.sites == 0) return folded;
  folded.inputs = random_inputs_of(folded.model);
  folded.range = largest_sampled(folded.model, folded.inputs);
  EXPECT_GT(folded.range, 0);
  find_score(folded);
  return folded;
}

struct Way {
  const char* pass;
  PassOptions options;
  // Takes every GridSample of these exports: none may be refused, none may be left.
  bool takes_all = false;
  int opset = 0;  // that it needs
};

// Above these a second form of the same pass takes minutes more and tells nothing new.
constexpr int kFewSites = 12;

std::vector<Way> ways(const Folded& folded) {
  std::vector<Way> all = {
      {"normalize_grid_sample", {}},
      {"replace_grid_sample_gather", {}, true},
      {"replace_ms_deform_attn", {}, true},
      {"replace_grid_sample_resize", {}},
      {"fold_static_grid", {}},
      {"quantize_static_grid", {}},
      {"replace_grid_sample_discrete", {{"outside", "zeros"}}, true},
      // On other images values may be larger; on these the bound must hold.
      {"replace_grid_sample_int8_lut",
       {{"range", fmt::format("{:.6g}", folded.range * 1.01)}},
       true},
      {"replace_grid_sample_deform_conv", {{"padding", "allow"}}, false, 20},
      {"tile_grid_sample", {{"memory", "3600000"}}},
  };
  if (folded.sites <= kFewSites) {
    all.push_back(
        {"replace_grid_sample_gather", {{"form", "two_axis"}, {"zeros", "border"}}, true});
    all.push_back({"replace_grid_sample_discrete", {{"formula", "historical"}}, true});
  }
  if (!folded.score.empty())
    all.push_back(
        {"prune_queries",
         {{"score", folded.score}, {"max_count", fmt::format("{}", folded.queries / 2)}}});
  return all;
}

std::string refusals(const PassOutcome& outcome) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const Refusal& refusal : outcome.skipped) by_reason[refusal.reason].push_back(refusal.node);
  std::string out;
  for (const auto& [reason, nodes] : by_reason)
    out += fmt::format("\n      refused {}: {}: {}", nodes.size(), nodes.front(), reason);
  return out;
}

void prove(const Way& way, const Folded& folded) {
  std::string title = way.pass;
  for (const auto& [name, value] : way.options) title += fmt::format(" {}={}", name, value);
  SCOPED_TRACE(title);
  Model before = folded.model.clone();
  if (way.opset > 0) run_pass(before, "convert_opset", {{"target", std::to_string(way.opset)}});
  Model after = before.clone();
  const PassOutcome outcome = run_pass(after, way.pass, way.options);
  std::cout << fmt::format("    {}: {} found, {} changes at {} sites{}{}", title, folded.sites,
                           outcome.applied, outcome.sites.size(),
                           outcome.total.empty() ? "" : ": " + outcome.total, refusals(outcome));
  if (way.takes_all) {
    EXPECT_GT(outcome.applied, 0);
    EXPECT_TRUE(outcome.skipped.empty());
    EXPECT_EQ(grid_samples(after), 0);
  }
  if (outcome.applied == 0) {
    std::cout << std::endl;
    return;
  }
  const auto pass = find_pass(way.pass);
  ASSERT_TRUE(pass.ok());
  const auto executor = make_cpu_executor();
  const ProofData data = proof_data_of(folded.inputs);
  const auto proof = PassProver(*executor, data, {}).prove(**pass, before, after, outcome);
  ASSERT_TRUE(proof.ok()) << proof.status().message();
  std::int64_t taps = 0, wrong = 0;
  for (const SamplingProof& sampling : proof->sampling)
    for (const SampledLevelProof& level : sampling.levels) {
      taps += level.taps.taps;
      wrong += level.taps.wrong;
    }
  std::cout << fmt::format(
                   "\n      {} ({}): {} regions, {} distinct, {} runs on made inputs, {} of "
                   "{} taps wrong, {:.1f} s",
                   to_string(proof->verdict), to_string((*pass)->exactness), proof->regions,
                   proof->distinct, proof->made_inputs, wrong, taps, proof->seconds)
            << std::endl;
  EXPECT_TRUE(proof->failures.empty())
      << proof->failures.front().input << ": " << to_text(proof->failures.front().check);
  if ((*pass)->exactness == PassClass::kApproximate) {
    EXPECT_EQ(proof->verdict, Verdict::kInconclusive);
    EXPECT_FALSE(proof->sampling.empty());
    return;
  }
  EXPECT_EQ(proof->verdict, Verdict::kPass);
  EXPECT_GT(proof->made_inputs, 0);
  EXPECT_GT(taps, 0);
  EXPECT_EQ(wrong, 0);
}

// One test an export, so that one can be run by itself: Deformable DETR's take half an hour each.
class SamplingExportsSlow : public ::testing::TestWithParam<fs::path> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SamplingExportsSlow);

TEST_P(SamplingExportsSlow, EveryReplacementIsProved) {
  const auto folded = fold(GetParam());
  ASSERT_TRUE(folded);
  std::cout << fmt::format("  {}: {} GridSample", GetParam().filename().string(), folded->sites)
            << std::endl;
  if (folded->sites == 0) return;
  for (const Way& way : ways(*folded)) prove(way, *folded);
}

INSTANTIATE_TEST_SUITE_P(Export, SamplingExportsSlow, ::testing::ValuesIn(all_exports()),
                         [](const auto& one) {
                           std::string name = one.param.stem().string();
                           std::replace_if(
                               name.begin(), name.end(),
                               [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

TEST(SamplingExports, AreThere) {
  if (all_exports().empty()) GTEST_SKIP() << kNoExports;
}

}  // namespace
}  // namespace tenonnx
