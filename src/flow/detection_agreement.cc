// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/detection_agreement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

namespace tenonnx {
namespace {

double score_difference(double a, double b) {
  const double larger = std::max(std::abs(a), std::abs(b));
  return larger > 0 ? std::min(1.0, std::abs(a - b) / larger) : 0;
}

// Not the IoU: boxes without area, which the mistakes make, have none.
double box_difference(const Box& a, const Box& b) {
  const double differs = std::max({std::abs(double{a.x0} - b.x0), std::abs(double{a.y0} - b.y0),
                                   std::abs(double{a.x1} - b.x1), std::abs(double{a.y1} - b.y1)});
  const double size = std::max({std::abs(double{a.x1} - a.x0), std::abs(double{a.y1} - a.y0),
                                std::abs(double{b.x1} - b.x0), std::abs(double{b.y1} - b.y0)});
  if (differs == 0) return 0;
  // Also for NaN: not smaller than 1.
  return differs < size ? differs / size : 1;
}

// The costs of the strong ones of `from`, each against its best partner in `to`.
void add_costs(std::span<const Detection> from, std::span<const Detection> to, double confidence,
               double& sum, int& count) {
  for (const Detection& a : from) {
    if (!(a.score >= confidence)) continue;
    double best = 1;
    for (const Detection& b : to)
      if (a.label == b.label)
        best = std::min(
            best, 0.5 * score_difference(a.score, b.score) + 0.5 * box_difference(a.box, b.box));
    sum += best;
    ++count;
  }
}

const Detection* partner(const Detection& a, std::span<const Detection> others) {
  const Detection* best = nullptr;
  double nearest = 0.5;
  for (const Detection& b : others) {
    const double differs = a.label == b.label ? box_difference(a.box, b.box) : 1;
    if (differs >= nearest) continue;
    nearest = differs;
    best = &b;
  }
  return best;
}

double score_distance(std::span<const Detection> other, std::span<const Detection> mine,
                      double confidence) {
  struct Scores {
    std::vector<double> all;
    std::size_t strong = 0;
  };
  std::map<std::int64_t, std::array<Scores, 2>> by_label;
  const auto sort_in = [&](std::span<const Detection> detections, std::size_t side) {
    for (const Detection& d : detections) {
      Scores& scores = by_label[d.label][side];
      scores.all.push_back(d.score);
      if (d.score >= confidence) ++scores.strong;
    }
  };
  sort_in(other, 0);
  sort_in(mine, 1);
  double sum = 0;
  std::size_t count = 0;
  for (auto& [label, sides] : by_label) {
    for (Scores& side : sides) std::sort(side.all.begin(), side.all.end(), std::greater<>());
    const std::size_t pairs = std::max(sides[0].strong, sides[1].strong);
    const auto at = [](const Scores& scores, std::size_t i) {
      return i < scores.all.size() ? scores.all[i] : 0.0;
    };
    for (std::size_t i = 0; i < pairs; ++i)
      sum += score_difference(at(sides[0], i), at(sides[1], i));
    count += pairs;
  }
  return count > 0 ? sum / static_cast<double>(count) : 0;
}

}  // namespace

DetectionAgreement agreement(std::span<const Detection> other, std::span<const Detection> mine,
                             double confidence) {
  DetectionAgreement out;
  double sum = 0;
  int count = 0;
  add_costs(other, mine, confidence, sum, count);
  add_costs(mine, other, confidence, sum, count);
  out.distance = count > 0 ? sum / count : 0;
  out.score_distance = score_distance(other, mine, confidence);
  double products = 0, others = 0, mines = 0;
  for (const Detection& a : other) {
    if (!(a.score >= confidence)) continue;
    ++out.total;
    others += double{a.score} * a.score;
    const Detection* b = partner(a, mine);
    if (b == nullptr) continue;
    ++out.matched;
    products += double{a.score} * b->score;
    mines += double{b->score} * b->score;
  }
  for (const Detection& b : mine)
    if (b.score >= confidence && partner(b, other) == nullptr) mines += double{b.score} * b.score;
  out.scores_cosine = others > 0 && mines > 0 ? products / std::sqrt(others * mines) : 0;
  return out;
}

}  // namespace tenonnx
