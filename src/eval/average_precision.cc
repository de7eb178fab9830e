// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Follows COCOeval step by step, because the figures depend on its order of ties: evaluateImg
// becomes match_group(), accumulate and summarize become the Curve functions.
#include "eval/average_precision.h"

#include <algorithm>
#include <bitset>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "base/status.h"

namespace tenonnx {
namespace {

constexpr std::size_t kThresholds = 10;
constexpr std::size_t kRecalls = 101;
constexpr std::size_t kAreas = 4;  // all, small, medium, large
constexpr std::size_t kMaxDetections = 100;
constexpr std::array<std::pair<double, double>, kAreas> kAreaRanges = {
    {{0, 1e10}, {0, 1024}, {1024, 9216}, {9216, 1e10}}};

// numpy.linspace(0.5, 0.95, 10) and linspace(0, 1, 101), bit for bit: i * step + start, and the end
// as it is given.
std::array<double, kThresholds> iou_thresholds() {
  std::array<double, kThresholds> t;
  const double step = (0.95 - 0.5) / 9;
  for (std::size_t i = 0; i < t.size(); ++i) t[i] = static_cast<double>(i) * step + 0.5;
  t.back() = 0.95;
  return t;
}

std::array<double, kRecalls> recall_thresholds() {
  std::array<double, kRecalls> t;
  for (std::size_t i = 0; i < t.size(); ++i) t[i] = static_cast<double>(i) * 0.01;
  t.back() = 1;
  return t;
}

// Source: bbIou in COCO's maskApi.c. A crowd's overlap is the part of the detection that it covers.
double coco_iou(const CocoBox& d, const CocoBox& g, bool crowd) {
  const double w = std::min(d[2] + d[0], g[2] + g[0]) - std::max(d[0], g[0]);
  if (w <= 0) return 0;
  const double h = std::min(d[3] + d[1], g[3] + g[1]) - std::max(d[1], g[1]);
  if (h <= 0) return 0;
  const double intersection = w * h;
  const double detection_area = d[2] * d[3];
  return intersection / (crowd ? detection_area : detection_area + g[2] * g[3] - intersection);
}

// One detection of one category and area range, with what became of it at every IoU threshold.
struct Scored {
  double score = 0;
  std::uint32_t image = 0;  // position among the images by rising id
  std::uint32_t rank = 0;   // among the detections of its category in its image
  std::bitset<kThresholds> matched;
  std::bitset<kThresholds> ignored;  // neither a true nor a false positive
};

// A category within an area range: what the precision-recall curve is made of.
struct Curve {
  std::vector<Scored> detections;     // by falling score
  std::vector<std::int64_t> objects;  // that count, in each image
};

struct Object {
  const CocoAnnotation* annotation = nullptr;
  bool ignored = false;
};

// All detections and objects of one category in one image.
void match_group(const std::vector<const CocoResult*>& detections,
                 const std::vector<const CocoAnnotation*>& annotations, std::size_t image,
                 std::pair<double, double> range, Curve* curve) {
  static const auto thresholds = iou_thresholds();
  const auto outside = [&](double area) { return area < range.first || area > range.second; };
  std::vector<Object> objects;
  for (const CocoAnnotation* a : annotations)
    objects.push_back({a, a->iscrowd || outside(a->area)});
  std::stable_sort(objects.begin(), objects.end(),
                   [](const Object& a, const Object& b) { return !a.ignored && b.ignored; });
  for (const Object& o : objects) curve->objects[image] += o.ignored ? 0 : 1;

  std::vector<std::bitset<kThresholds>> taken(objects.size());
  std::vector<double> overlaps(objects.size());
  for (std::size_t i = 0; i < detections.size(); ++i) {
    const CocoResult& d = *detections[i];
    Scored scored{
        d.score, static_cast<std::uint32_t>(image), static_cast<std::uint32_t>(i), {}, {}};
    for (std::size_t g = 0; g < objects.size(); ++g) {
      const CocoAnnotation& a = *objects[g].annotation;
      overlaps[g] = coco_iou(d.bbox, a.bbox, a.iscrowd);
    }
    const bool out = outside(d.bbox[2] * d.bbox[3]);
    for (std::size_t t = 0; t < kThresholds; ++t) {
      double best = std::min(thresholds[t], 1 - 1e-10);
      std::optional<std::size_t> match;
      for (std::size_t g = 0; g < objects.size(); ++g) {
        if (taken[g][t] && !objects[g].annotation->iscrowd) continue;
        // Ignored objects come last and never replace one that counts.
        if (match && !objects[*match].ignored && objects[g].ignored) break;
        if (overlaps[g] < best) continue;
        best = overlaps[g];
        match = g;
      }
      if (match) {
        taken[*match].set(t);
        scored.ignored[t] = objects[*match].ignored;
        // pycocotools stores the id of the match and takes 0 for none.
        scored.matched[t] = objects[*match].annotation->id != 0;
      }
      if (!scored.matched[t] && out) scored.ignored.set(t);
    }
    curve->detections.push_back(scored);
  }
}

struct Point {
  double recall = 0;
  double precision = 0;
};

// Precision (interpolated at 101 recalls, averaged) and the last recall at one threshold; absent
// where no object counts. image_weights may be empty: every image once.
struct Summary {
  double ap = 0;
  double recall = 0;
};
std::optional<Summary> summarize(const Curve& curve, std::size_t threshold,
                                 std::size_t max_detections, std::span<const int> image_weights,
                                 std::vector<Point>* scratch) {
  static const auto recalls = recall_thresholds();
  const auto weight = [&](std::size_t image) -> double {
    return image_weights.empty() ? 1 : image_weights[image];
  };
  double objects = 0;
  for (std::size_t i = 0; i < curve.objects.size(); ++i)
    objects += weight(i) * static_cast<double>(curve.objects[i]);
  if (objects == 0) return std::nullopt;
  std::vector<Point>& points = *scratch;
  points.clear();
  double tp = 0, fp = 0;
  for (const Scored& d : curve.detections) {
    const double w = weight(d.image);
    if (d.rank >= max_detections || w == 0 || d.ignored[threshold]) continue;
    if (!d.matched[threshold]) {
      fp += w;
      continue;
    }
    tp += w;
    // Recall rises and the interpolated precision has its maxima at true positives alone: the
    // points between them change nothing.
    points.push_back({tp / objects, tp / (fp + tp + std::numeric_limits<double>::epsilon())});
  }
  Summary summary;
  if (points.empty()) return summary;
  summary.recall = points.back().recall;
  for (std::size_t i = points.size() - 1; i > 0; --i)
    points[i - 1].precision = std::max(points[i - 1].precision, points[i].precision);
  auto at = points.begin();
  for (double r : recalls) {
    at = std::find_if(at, points.end(), [r](const Point& p) { return p.recall >= r; });
    if (at == points.end()) break;
    summary.ap += at->precision;
  }
  summary.ap /= kRecalls;
  return summary;
}

// The mean over what was measured; -1 where nothing was.
struct Mean {
  double sum = 0;
  int count = 0;
  void add(double v) {
    sum += v;
    ++count;
  }
  double value() const { return count > 0 ? sum / count : -1; }
};

bool is_finite(const CocoResult& r) {
  return std::isfinite(r.score) &&
         std::all_of(r.bbox.begin(), r.bbox.end(), [](double v) { return std::isfinite(v); });
}

}  // namespace

struct CocoEvaluation::State {
  std::size_t images = 0;
  std::vector<std::int64_t> categories;           // by rising id
  std::vector<std::array<Curve, kAreas>> curves;  // one for each category
  std::vector<std::string> notes;

  // Means over categories (and the given thresholds) of AP and of recall.
  std::pair<double, double> mean(std::size_t area, std::size_t max_detections,
                                 std::optional<std::size_t> threshold = {}) const {
    Mean ap, recall;
    std::vector<Point> scratch;
    for (const auto& curve : curves) {
      for (std::size_t t = 0; t < kThresholds; ++t) {
        if (threshold && *threshold != t) continue;
        const auto s = summarize(curve[area], t, max_detections, {}, &scratch);
        if (!s) continue;
        ap.add(s->ap);
        recall.add(s->recall);
      }
    }
    return {ap.value(), recall.value()};
  }
};

Result<CocoEvaluation> CocoEvaluation::create(const CocoDataset& dataset,
                                              std::span<const CocoResult> results) {
  auto state = std::make_unique<State>();
  std::set<std::int64_t> image_ids, category_ids;
  for (const CocoImage& image : dataset.images) image_ids.insert(image.id);
  for (const CocoCategory& category : dataset.categories) category_ids.insert(category.id);
  state->images = image_ids.size();
  state->categories.assign(category_ids.begin(), category_ids.end());

  using Key = std::pair<std::int64_t, std::int64_t>;  // image, category
  std::map<Key, std::vector<const CocoAnnotation*>> annotations;
  std::map<Key, std::vector<const CocoResult*>> detections;
  for (const CocoAnnotation& a : dataset.annotations) {
    annotations[{a.image_id, a.category_id}].push_back(&a);
    if (a.id == 0) {
      state->notes.push_back(
          "an annotation has id 0: pycocotools counts a detection that matches it as unmatched, "
          "and "
          "so do these figures; number annotations from 1");
    }
  }
  std::int64_t unknown = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const CocoResult& r = results[i];
    if (!image_ids.contains(r.image_id)) {
      return InvalidArgument(
          "result {} is of image {}, which the annotations do not hold; evaluate results together "
          "with the annotations of the same images",
          i, r.image_id);
    }
    if (!is_finite(r)) {
      return InvalidArgument("result {} (image {}) has a score or box that is not finite", i,
                             r.image_id);
    }
    if (category_ids.contains(r.category_id)) {
      detections[{r.image_id, r.category_id}].push_back(&r);
    } else {
      ++unknown;
    }
  }
  if (unknown > 0) {
    state->notes.push_back(fmt::format(
        "{} results are of categories that the annotations do not hold; not counted", unknown));
  }
  for (auto& [key, list] : detections) {
    std::stable_sort(list.begin(), list.end(),
                     [](const CocoResult* a, const CocoResult* b) { return a->score > b->score; });
    if (list.size() > kMaxDetections) list.resize(kMaxDetections);
  }

  state->curves.resize(state->categories.size());
  for (std::size_t c = 0; c < state->categories.size(); ++c) {
    for (std::size_t area = 0; area < kAreas; ++area) {
      Curve& curve = state->curves[c][area];
      curve.objects.assign(state->images, 0);
      std::size_t image = 0;
      for (std::int64_t id : image_ids) {
        const Key key{id, state->categories[c]};
        const auto d = detections.find(key);
        const auto a = annotations.find(key);
        match_group(d == detections.end() ? std::vector<const CocoResult*>() : d->second,
                    a == annotations.end() ? std::vector<const CocoAnnotation*>() : a->second,
                    image++, kAreaRanges[area], &curve);
      }
      std::stable_sort(curve.detections.begin(), curve.detections.end(),
                       [](const Scored& a, const Scored& b) { return a.score > b.score; });
    }
  }
  return CocoEvaluation(std::move(state));
}

CocoEvaluation::CocoEvaluation(std::unique_ptr<State> state) : state_(std::move(state)) {}
CocoEvaluation::CocoEvaluation(CocoEvaluation&&) noexcept = default;
CocoEvaluation& CocoEvaluation::operator=(CocoEvaluation&&) noexcept = default;
CocoEvaluation::~CocoEvaluation() = default;

std::size_t CocoEvaluation::image_count() const { return state_->images; }
const std::vector<std::string>& CocoEvaluation::notes() const { return state_->notes; }

CocoFigures CocoEvaluation::figures() const {
  CocoFigures f;
  std::tie(f.ap, f.ar100) = state_->mean(0, 100);
  f.ap50 = state_->mean(0, 100, 0).first;
  f.ap75 = state_->mean(0, 100, 5).first;
  std::tie(f.ap_small, f.ar_small) = state_->mean(1, 100);
  std::tie(f.ap_medium, f.ar_medium) = state_->mean(2, 100);
  std::tie(f.ap_large, f.ar_large) = state_->mean(3, 100);
  f.ar1 = state_->mean(0, 1).second;
  f.ar10 = state_->mean(0, 10).second;
  return f;
}

std::vector<std::pair<std::int64_t, double>> CocoEvaluation::ap_by_category() const {
  std::vector<std::pair<std::int64_t, double>> all;
  std::vector<Point> scratch;
  for (std::size_t c = 0; c < state_->categories.size(); ++c) {
    Mean ap;
    for (std::size_t t = 0; t < kThresholds; ++t) {
      if (const auto s = summarize(state_->curves[c][0], t, kMaxDetections, {}, &scratch))
        ap.add(s->ap);
    }
    all.emplace_back(state_->categories[c], ap.value());
  }
  return all;
}

double CocoEvaluation::weighted_ap(std::span<const int> image_weights) const {
  Mean ap;
  std::vector<Point> scratch;
  for (const auto& curve : state_->curves) {
    for (std::size_t t = 0; t < kThresholds; ++t) {
      if (const auto s = summarize(curve[0], t, kMaxDetections, image_weights, &scratch))
        ap.add(s->ap);
    }
  }
  return ap.value();
}

std::array<double, 12> CocoFigures::stats() const {
  return {ap,  ap50, ap75,  ap_small, ap_medium, ap_large,
          ar1, ar10, ar100, ar_small, ar_medium, ar_large};
}

std::span<const std::string_view, 12> CocoFigures::names() {
  static constexpr std::array<std::string_view, 12> kNames = {
      "ap",  "ap50", "ap75",  "ap_small", "ap_medium", "ap_large",
      "ar1", "ar10", "ar100", "ar_small", "ar_medium", "ar_large"};
  return kNames;
}

Json to_json(const CocoFigures& figures) {
  Json json;
  const auto stats = figures.stats();
  for (std::size_t i = 0; i < stats.size(); ++i)
    json[std::string(CocoFigures::names()[i])] = stats[i];
  return json;
}

}  // namespace tenonnx
