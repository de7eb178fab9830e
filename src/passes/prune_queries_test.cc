// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/status.h"
#include "passes/proof.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::HasSubstr;

struct Lattice {
  std::int64_t batch = 1, channels = 2, rows = 4, columns = 5;
  std::string score_shape = "1,20";
};

Model model_of(const Lattice& l, const std::string& nodes = "y = GridSample (value, grid)",
               int opset = 20) {
  return model_from_text(fmt::format(
      "<ir_version: 8, opset_import: [\"\" : {}]> g (float[{},{},6,7] value, float[{},{},{},2] "
      "grid, float[{}] score) => (float[{},{},{},{}] y) {{ {} }}",
      opset, l.batch, l.channels, l.batch, l.rows, l.columns, l.score_shape, l.batch, l.channels,
      l.rows, l.columns, nodes));
}

TensorMap inputs_of(const Lattice& l, const std::vector<float>& score, const Shape& shape) {
  Tensor grid = ramp({l.batch, l.rows, l.columns, 2});
  return {{"value", ramp({l.batch, l.channels, 6, 7})},
          {"grid", grid},
          {"score", Tensor::from<float>(DType::kFloat32, shape, score)}};
}

std::vector<float> rising(std::int64_t n) {
  std::vector<float> out;
  // No two alike, in no order.
  for (std::int64_t i = 0; i < n; ++i) out.push_back(static_cast<float>((i * 7) % n) / float(n));
  return out;
}

// What the pass is to give, from the whole: query q of image n keeps its own, or takes another's.
void expect_queries(const Tensor& whole, const Tensor& pruned, const Lattice& l,
                    std::int64_t points, const std::vector<std::vector<std::int64_t>>& from) {
  const std::int64_t queries = l.rows * l.columns / points;
  for (std::int64_t n = 0; n < l.batch; ++n) {
    for (std::int64_t c = 0; c < l.channels; ++c) {
      for (std::int64_t q = 0; q < queries; ++q) {
        const auto source = from[static_cast<std::size_t>(n)][static_cast<std::size_t>(q)];
        for (std::int64_t p = 0; p < points; ++p) {
          const std::int64_t base = (n * l.channels + c) * queries;
          const float expected = source < 0 ? 0 : whole.data<float>()[(base + source) * points + p];
          EXPECT_EQ(pruned.data<float>()[(base + q) * points + p], expected)
              << "image " << n << " channel " << c << " query " << q;
        }
      }
    }
  }
}

// The queries of the `count` highest scores that reach the threshold.
std::vector<bool> kept_of(const std::vector<float>& score, std::int64_t count, float threshold) {
  std::vector<std::size_t> order(score.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return score[a] > score[b]; });
  std::vector<bool> kept(score.size(), false);
  for (std::int64_t i = 0; i < count; ++i)
    kept[order[static_cast<std::size_t>(i)]] =
        score[order[static_cast<std::size_t>(i)]] >= threshold;
  return kept;
}

TEST(PruneQueries, FillsWithZero) {
  const Lattice l;
  const Model before = model_of(l);
  Model after = before.clone();
  const PassOutcome outcome = run_pass(
      after, "prune_queries", {{"score", "score"}, {"max_count", "6"}, {"threshold", "0.8"}});
  ASSERT_EQ(outcome.applied, 1);
  EXPECT_THAT(outcome.sites[0].what, HasSubstr("at most 6 of 20 queries are sampled (30 %)"));
  const std::vector<float> score = rising(20);
  const TensorMap inputs = inputs_of(l, score, {1, 20});
  const std::vector<bool> kept = kept_of(score, 6, 0.8F);
  EXPECT_EQ(std::count(kept.begin(), kept.end(), true), 4);  // 16 / 20 to 19 / 20
  std::vector<std::int64_t> from;
  for (std::size_t q = 0; q < 20; ++q) from.push_back(kept[q] ? static_cast<std::int64_t>(q) : -1);
  expect_queries(run_on_cpu(before, inputs).at("y"), run_on_cpu(after, inputs).at("y"), l, 1,
                 {from});
}

TEST(PruneQueries, FillsWithTheNearestKeptQuery) {
  const Lattice l;
  const Model before = model_of(l);
  Model after = before.clone();
  run_pass(after, "prune_queries",
           {{"score", "score"}, {"max_count", "6"}, {"threshold", "0.8"}, {"fill", "nearest"}});
  const std::vector<float> score = rising(20);
  const TensorMap inputs = inputs_of(l, score, {1, 20});
  const std::vector<bool> kept = kept_of(score, 6, 0.8F);
  const Tensor whole = run_on_cpu(before, inputs).at("y"), got = run_on_cpu(after, inputs).at("y");
  // Several may be equally near: any of them.
  for (std::int64_t q = 0; q < 20; ++q) {
    double least = 1e9;
    const auto distance = [&](std::int64_t k) {
      return std::hypot(double(q / 5 - k / 5), double(q % 5 - k % 5));
    };
    for (std::int64_t k = 0; k < 20; ++k)
      if (kept[static_cast<std::size_t>(k)]) least = std::min(least, distance(k));
    bool found = false;
    for (std::int64_t k = 0; k < 20; ++k)
      found = found || (kept[static_cast<std::size_t>(k)] && distance(k) == least &&
                        got.data<float>()[q] == whole.data<float>()[k] &&
                        got.data<float>()[20 + q] == whole.data<float>()[20 + k]);
    EXPECT_TRUE(found) << q;
  }
}

TEST(PruneQueries, NothingKeptIsZeroEverywhere) {
  for (const char* fill : {"zero", "nearest"}) {
    const Lattice l;
    Model model = model_of(l);
    run_pass(model, "prune_queries",
             {{"score", "score"}, {"max_count", "6"}, {"threshold", "2"}, {"fill", fill}});
    const Tensor y = run_on_cpu(model, inputs_of(l, rising(20), {1, 20})).at("y");
    for (std::int64_t i = 0; i < y.size(); ++i) EXPECT_EQ(y.data<float>()[i], 0) << fill;
  }
}

// One score for each query of four points, of each of two images, shared by two heads of each.
TEST(PruneQueries, TakesAScoreThatHeadsShare) {
  Lattice l;
  l.batch = 4;
  l.rows = 6;
  l.columns = 4;
  l.score_shape = "2,6,1";
  const std::vector<float> score = {0.1F, 0.9F, 0.2F, 0.8F, 0.3F, 0.4F,
                                    0.6F, 0.5F, 0.4F, 0.3F, 0.2F, 0.1F};
  const Model before = model_of(l);
  for (const char* fill : {"zero", "nearest"}) {
    Model after = before.clone();
    ASSERT_EQ(
        run_pass(after, "prune_queries", {{"score", "score"}, {"max_count", "2"}, {"fill", fill}})
            .applied,
        1);
    const TensorMap inputs = inputs_of(l, score, {2, 6, 1});
    const bool zero = std::string(fill) == "zero";
    // Kept: 1 and 3 of the first image, 0 and 1 of the second one. Query 2 lies between 1 and 3,
    // of which TopK gives 1 first.
    std::vector<std::int64_t> a = {-1, 1, -1, 3, -1, -1}, b = {0, 1, -1, -1, -1, -1};
    if (!zero) a = {1, 1, 1, 3, 3, 3}, b = {0, 1, 1, 1, 1, 1};
    expect_queries(run_on_cpu(before, inputs).at("y"), run_on_cpu(after, inputs).at("y"), l, 4,
                   {a, a, b, b});
  }
}

// What is not sampled does not reach the output, nor does a score that is no number.
TEST(PruneQueries, NanStaysWhereItIs) {
  const Lattice l;
  Model model = model_of(l);
  run_pass(model, "prune_queries", {{"score", "score"}, {"max_count", "4"}, {"threshold", "0.8"}});
  TensorMap inputs = inputs_of(l, rising(20), {1, 20});
  // Query 0 has score 0: its coordinates are no numbers.
  inputs.at("grid").mutable_data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  const Tensor y = run_on_cpu(model, inputs).at("y");
  for (std::int64_t i = 0; i < y.size(); ++i) EXPECT_TRUE(std::isfinite(y.data<float>()[i]));
}

TEST(PruneQueries, TheProofTellsTheShareKept) {
  const Lattice l;
  const Model before = model_of(l);
  Model after = before.clone();
  const PassOutcome outcome = run_pass(
      after, "prune_queries", {{"score", "score"}, {"max_count", "6"}, {"threshold", "0.8"}});
  const std::vector<TensorMap> inputs = {inputs_of(l, rising(20), {1, 20}),
                                         inputs_of(l, std::vector<float>(20, 0.0F), {1, 20})};
  ProofData data;
  data.count = 2;
  data.load = [&](std::size_t k) -> Result<TensorMap> { return inputs[k]; };
  const auto pass = find_pass("prune_queries");
  ASSERT_TRUE(pass.ok());
  const auto executor = make_cpu_executor();
  const auto proof = PassProver(*executor, data, {}).prove(**pass, before, after, outcome);
  ASSERT_TRUE(proof.ok()) << proof.status().message();
  EXPECT_EQ(proof->verdict, Verdict::kInconclusive);
  ASSERT_EQ(proof->notes.size(), 1U);
  EXPECT_THAT(proof->notes[0], HasSubstr("10 % of 20 queries are kept in the mean of 2 inputs, "
                                         "0 % at least, 20 % at most"));
  ASSERT_EQ(proof->sampling.size(), 1U);
}

// ---- Refusals

std::string error_of(const PassOptions& options) {
  Model model = model_of({});
  PassOptions prefixed;
  for (const auto& [key, value] : options) prefixed["prune_queries." + key] = value;
  const std::vector<std::string> names = {"prune_queries"};
  const auto reports = run_passes(model, names, prefixed);
  return reports.ok() ? "" : reports.status().message();
}

TEST(PruneQueries, NeedsAScoreAndACount) {
  EXPECT_THAT(error_of({{"max_count", "6"}}), HasSubstr("name the tensor with --score TENSOR"));
  EXPECT_THAT(error_of({{"score", "score"}}), HasSubstr("max_count"));
  EXPECT_THAT(error_of({{"score", "nowhere"}, {"max_count", "6"}}),
              HasSubstr("the graph has no tensor 'nowhere'"));
  EXPECT_THAT(error_of({{"score", "Score"}, {"max_count", "6"}}),
              HasSubstr("the nearest names: 'score'"));
  EXPECT_THAT(error_of({{"score", "score"}, {"max_count", "6"}, {"threshold", "high"}}),
              HasSubstr("threshold must be a finite number, got 'high'"));
  EXPECT_THAT(error_of({{"score", "score"}, {"max_count", "6"}, {"fill", "mean"}}),
              HasSubstr("fill must be zero or nearest, got 'mean'"));
}

std::string refusal(Model model, const PassOptions& options) {
  const PassOutcome outcome = run_pass(model, "prune_queries", options);
  EXPECT_EQ(outcome.applied, 0);
  EXPECT_EQ(outcome.skipped.size(), 1U);
  return outcome.skipped.empty() ? "" : outcome.skipped[0].reason;
}

TEST(PruneQueries, RefusesWithAReason) {
  const PassOptions options = {{"score", "score"}, {"max_count", "6"}};
  Lattice other;
  other.score_shape = "1,7";
  EXPECT_THAT(refusal(model_of(other), options), HasSubstr("has 7 elements"));
  EXPECT_THAT(refusal(model_of({}), {{"score", "score"}, {"max_count", "20"}}),
              HasSubstr("nothing would be pruned"));
  EXPECT_THAT(refusal(model_of({}, "y = GridSample (value, grid) late = Sigmoid (score)"),
                      {{"score", "late"}, {"max_count", "6"}}),
              HasSubstr("the score 'late' is computed after it"));
  EXPECT_THAT(refusal(model_of({}, "early = Cast <to = 11> (score) y = GridSample (value, grid)"),
                      {{"score", "early"}, {"max_count", "6"}}),
              HasSubstr("not float32"));
}

}  // namespace
}  // namespace tenonnx
