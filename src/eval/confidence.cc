// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "eval/confidence.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tenonnx {
namespace {

// Uniform in [0, n): the high half of a 64 by 32 bit product. The bias is below n / 2^32, far below
// what a thousand resamples can show; n is a count of images or runs.
std::size_t below(std::mt19937_64& generator, std::size_t n) {
  return static_cast<std::size_t>(((generator() >> 32) * static_cast<std::uint64_t>(n)) >> 32);
}

double sorted_percentile(const std::vector<double>& sorted, double q) {
  const double position = std::clamp(q, 0.0, 100.0) / 100 * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(position);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (position - static_cast<double>(low));
}

ConfidenceInterval interval_of(double estimate, std::vector<double> resampled,
                               const BootstrapOptions& options) {
  const double tail = (1 - options.level) / 2 * 100;
  return {estimate, percentile(resampled, tail), percentile(resampled, 100 - tail), options};
}

}  // namespace

double percentile(std::span<const double> samples, double q) {
  if (samples.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted_percentile(sorted, q);
}

ConfidenceInterval bootstrap_percentile(std::span<const double> samples, double q,
                                        const BootstrapOptions& options) {
  std::mt19937_64 generator(options.seed);
  std::vector<double> resampled;
  std::vector<double> draw(samples.size());
  for (int i = 0; i < options.resamples && !samples.empty(); ++i) {
    for (double& v : draw) v = samples[below(generator, samples.size())];
    resampled.push_back(percentile(draw, q));
  }
  return interval_of(percentile(samples, q), std::move(resampled), options);
}

ConfidenceInterval bootstrap_ap(const CocoEvaluation& evaluation, const BootstrapOptions& options) {
  std::mt19937_64 generator(options.seed);
  const std::size_t images = evaluation.image_count();
  std::vector<double> resampled;
  std::vector<int> weights(images);
  for (int i = 0; i < options.resamples; ++i) {
    std::fill(weights.begin(), weights.end(), 0);
    for (std::size_t k = 0; k < images; ++k) ++weights[below(generator, images)];
    const double ap = evaluation.weighted_ap(weights);
    if (ap >= 0) resampled.push_back(ap);  // -1: no object was drawn
  }
  return interval_of(evaluation.figures().ap, std::move(resampled), options);
}

Json to_json(const ConfidenceInterval& interval) {
  Json json;
  json["estimate"] = json_number(interval.estimate);
  json["low"] = json_number(interval.low);
  json["high"] = json_number(interval.high);
  json["level"] = interval.options.level;
  json["resamples"] = interval.options.resamples;
  json["seed"] = interval.options.seed;
  json["method"] = "percentile bootstrap";
  return json;
}

}  // namespace tenonnx
