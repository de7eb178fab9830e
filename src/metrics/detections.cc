// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "metrics/detections.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

namespace tenonnx {
namespace {

double area(const Box& b) {
  return std::max(0.0, static_cast<double>(b.x1) - b.x0) *
         std::max(0.0, static_cast<double>(b.y1) - b.y0);
}

bool is_finite(const Detection& d) {
  return std::isfinite(d.score) && std::isfinite(d.box.x0) && std::isfinite(d.box.y0) &&
         std::isfinite(d.box.x1) && std::isfinite(d.box.y1);
}

auto coordinates(const Box& b) { return std::tuple(b.x0, b.y0, b.x1, b.y1); }

// One output's detections above the lower confidence, the best first.
struct Entry {
  Detection detection;
  std::int64_t row = -1;  // in the caller's order
  bool strong = false;
  bool duplicate = false;
  std::vector<std::size_t> stand_ins;  // entries: near-tied duplicates of this one
  bool matched = false;
};

struct Side {
  std::vector<Entry> entries;
  std::int64_t nonfinite = 0;
  std::int64_t strong = 0;
  std::int64_t duplicates = 0;
};

Side prepare(std::span<const Detection> detections, const MatchOptions& options) {
  Side side;
  for (std::size_t i = 0; i < detections.size(); ++i) {
    const Detection& d = detections[i];
    if (!is_finite(d)) {
      ++side.nonfinite;
      continue;
    }
    const bool strong = d.score > options.confidence;
    if (!strong && !(d.score > options.candidate_confidence)) continue;
    side.strong += strong ? 1 : 0;
    side.entries.push_back({d, static_cast<std::int64_t>(i), strong, false, {}, false});
  }
  std::sort(side.entries.begin(), side.entries.end(), [](const Entry& a, const Entry& b) {
    if (a.detection.score != b.detection.score) return a.detection.score > b.detection.score;
    if (a.detection.label != b.detection.label) return a.detection.label < b.detection.label;
    if (a.detection.box != b.detection.box)
      return coordinates(a.detection.box) < coordinates(b.detection.box);
    return a.row < b.row;
  });
  for (std::size_t i = 0; i < side.entries.size(); ++i) {
    Entry& entry = side.entries[i];
    for (std::size_t j = 0; j < i; ++j) {
      Entry& higher = side.entries[j];
      if (higher.detection.label != entry.detection.label ||
          iou(higher.detection.box, entry.detection.box) < options.duplicate_iou) {
        continue;
      }
      entry.duplicate = true;
      if (higher.detection.score - entry.detection.score <= options.near_tie)
        higher.stand_ins.push_back(i);
    }
    side.duplicates += entry.duplicate && entry.strong ? 1 : 0;
  }
  return side;
}

struct Proposal {
  std::size_t r = 0, c = 0;
  double iou = 0;
  double score_difference = 0;
};

double score_difference(const Detection& a, const Detection& b) {
  return std::fabs(static_cast<double>(a.score) - b.score);
}

// Greedy over all the pairs of entries that `admit` lets through and that have no partner yet.
std::vector<Proposal> match_greedily(Side& reference, Side& candidate, double min_iou,
                                     const std::function<bool(const Entry&, const Entry&)>& admit) {
  std::vector<Proposal> proposals;
  for (std::size_t r = 0; r < reference.entries.size(); ++r) {
    const Entry& a = reference.entries[r];
    for (std::size_t c = 0; c < candidate.entries.size(); ++c) {
      const Entry& b = candidate.entries[c];
      if (a.detection.label != b.detection.label || a.matched || b.matched ||
          !(a.strong || b.strong) || !admit(a, b)) {
        continue;
      }
      const double overlap = iou(a.detection.box, b.detection.box);
      if (overlap >= min_iou)
        proposals.push_back({r, c, overlap, score_difference(a.detection, b.detection)});
    }
  }
  // Entries are sorted by score, box and row: comparing their positions compares those.
  std::sort(proposals.begin(), proposals.end(), [](const Proposal& a, const Proposal& b) {
    return std::tuple(-a.iou, a.score_difference, a.r, a.c) <
           std::tuple(-b.iou, b.score_difference, b.r, b.c);
  });
  std::vector<Proposal> taken;
  for (const Proposal& p : proposals) {
    if (reference.entries[p.r].matched || candidate.entries[p.c].matched) continue;
    reference.entries[p.r].matched = candidate.entries[p.c].matched = true;
    taken.push_back(p);
  }
  return taken;
}

// The best overlap of a pair of originals or their near-tied duplicates.
double best_iou(const Side& reference, const Side& candidate, const Proposal& p) {
  const Entry& r = reference.entries[p.r];
  const Entry& c = candidate.entries[p.c];
  double best = p.iou;
  for (std::size_t d : c.stand_ins)
    best = std::max(best, iou(r.detection.box, candidate.entries[d].detection.box));
  for (std::size_t d : r.stand_ins)
    best = std::max(best, iou(reference.entries[d].detection.box, c.detection.box));
  return best;
}

// Does the side hold a detection of this label that is near-tied with its highest-scored one?
bool holds_near_top(const Side& side, std::int64_t label, double near_tie) {
  const double top = side.entries.front().detection.score;
  return std::any_of(side.entries.begin(), side.entries.end(), [&](const Entry& e) {
    return e.detection.label == label && top - e.detection.score <= near_tie;
  });
}

TopClass top_class(const Side& reference, const Side& candidate, double near_tie) {
  if (reference.strong == 0 && candidate.strong == 0) return TopClass::kNone;
  if (reference.entries.empty() || candidate.entries.empty()) return TopClass::kDiffers;
  const std::int64_t r = reference.entries.front().detection.label;
  const std::int64_t c = candidate.entries.front().detection.label;
  if (r == c) return TopClass::kSame;
  return holds_near_top(reference, c, near_tie) && holds_near_top(candidate, r, near_tie)
             ? TopClass::kNearTie
             : TopClass::kDiffers;
}

std::vector<std::int64_t> lonely(const Side& side) {
  std::vector<std::int64_t> rows;
  for (const Entry& e : side.entries)
    if (e.strong && !e.duplicate && !e.matched) rows.push_back(e.row);
  return rows;
}

}  // namespace

double iou(const Box& a, const Box& b) {
  if (a == b) return 1;
  const double width = static_cast<double>(std::min(a.x1, b.x1)) - std::max(a.x0, b.x0);
  const double height = static_cast<double>(std::min(a.y1, b.y1)) - std::max(a.y0, b.y0);
  if (width <= 0 || height <= 0) return 0;
  const double intersection = width * height;
  return intersection / (area(a) + area(b) - intersection);
}

MatchResult match_detections(std::span<const Detection> reference,
                             std::span<const Detection> candidate, const MatchOptions& options) {
  Side r = prepare(reference, options);
  Side c = prepare(candidate, options);
  MatchResult result;
  result.reference_strong = r.strong;
  result.candidate_strong = c.strong;
  result.reference_duplicates = r.duplicates;
  result.candidate_duplicates = c.duplicates;
  result.reference_nonfinite = r.nonfinite;
  result.candidate_nonfinite = c.nonfinite;
  result.top_class = top_class(r, c, options.near_tie);
  const auto originals = [](const Entry& a, const Entry& b) {
    return !a.duplicate && !b.duplicate;
  };
  const auto any = [](const Entry&, const Entry&) { return true; };
  for (Proposal& p : match_greedily(r, c, options.min_iou, originals)) {
    result.pairs.push_back(
        {r.entries[p.r].row, c.entries[p.c].row, best_iou(r, c, p), p.score_difference, true});
  }
  for (const Proposal& p : match_greedily(r, c, options.min_iou, any)) {
    result.pairs.push_back(
        {r.entries[p.r].row, c.entries[p.c].row, p.iou, p.score_difference, false});
  }
  std::stable_sort(result.pairs.begin(), result.pairs.end(),
                   [](const DetectionPair& a, const DetectionPair& b) {
                     return std::tuple(!a.gated, -a.iou) < std::tuple(!b.gated, -b.iou);
                   });
  result.unmatched_reference = lonely(r);
  result.unmatched_candidate = lonely(c);
  return result;
}

double scores_cosine(std::span<const Detection> reference, std::span<const Detection> candidate) {
  const auto sorted = [](std::span<const Detection> detections) {
    std::vector<double> scores;
    for (const Detection& d : detections) scores.push_back(d.score);
    std::sort(scores.begin(), scores.end(), std::greater<>());
    return scores;
  };
  const auto finite = [](const Detection& d) { return std::isfinite(d.score); };
  if (!std::all_of(reference.begin(), reference.end(), finite) ||
      !std::all_of(candidate.begin(), candidate.end(), finite) ||
      (reference.empty() && candidate.empty())) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const std::vector<double> r = sorted(reference), c = sorted(candidate);
  double rr = 0, cc = 0, rc = 0;
  for (double v : r) rr += v * v;
  for (double v : c) cc += v * v;
  for (std::size_t i = 0; i < std::min(r.size(), c.size()); ++i) rc += r[i] * c[i];
  if (rr == 0 && cc == 0) return 1;
  if (rr == 0 || cc == 0) return 0;
  return std::clamp(rc / std::sqrt(rr * cc), -1.0, 1.0);
}

}  // namespace tenonnx
