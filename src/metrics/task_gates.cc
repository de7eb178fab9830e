// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "metrics/task_gates.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/status.h"
#include "base/wording.h"

namespace tenonnx {
namespace {

std::string describe(const Detection& d) {
  return fmt::format("class {}, score {:.3f}, box [{:.1f}, {:.1f}, {:.1f}, {:.1f}]", d.label,
                     d.score, d.box.x0, d.box.y0, d.box.x1, d.box.y1);
}

std::string in_image(const std::string& image) {
  return image.empty() ? "" : fmt::format("worst in '{}'", image);
}

Check count_check(std::string name, std::int64_t value, std::string_view gate,
                  std::string note = {}) {
  return make_check(std::move(name), static_cast<double>(value), Comparison::kAtMost,
                    {0, std::string(gate)}, std::move(note));
}

// A check that holds or leaves the whole inconclusive: a small sample proves nothing wrong.
Check sample_check(std::string name, std::int64_t value, std::int64_t least) {
  Check check = make_check(std::move(name), static_cast<double>(value), Comparison::kAtLeast,
                           {static_cast<double>(least), "smallest sample for a verdict"});
  if (check.verdict == Verdict::kFail) {
    check.verdict = Verdict::kInconclusive;
    check.note = "too few to say PASS; give more images";
  }
  return check;
}

// What the reference itself left without a number cannot be compared: no PASS then.
Check finite_detections_check(const TaskSummary& s, const std::string& gate) {
  Check check =
      count_check("detections with Inf or NaN where the reference has none", s.broken, gate);
  if (s.reference_nonfinite > 0) {
    check.verdict = combine(check.verdict, Verdict::kInconclusive);
    check.note = fmt::format("the reference itself has {} such detections, the candidate {}",
                             s.reference_nonfinite, s.candidate_nonfinite);
  }
  return check;
}

}  // namespace

TaskGates TaskGates::cpu_reexport() {
  TaskGates gates;
  gates.name = "a cpu re-export";
  gates.scores_cosine = 0.999;
  gates.iou = 0.99;
  gates.score_difference = 0.001;
  return gates;
}

TaskGates TaskGates::heterogeneous() {
  TaskGates gates;
  gates.name = "a heterogeneous chain";
  gates.features_cosine = 0.99;
  gates.scores_cosine = 0.99;
  gates.iou = 0.95;
  gates.score_difference = 0.05;
  return gates;
}

double TaskSummary::mean_iou() const {
  return matched > 0 ? sum_iou / static_cast<double>(matched)
                     : std::numeric_limits<double>::quiet_NaN();
}

void TaskSummary::add_image(std::string_view image, std::span<const Detection> reference,
                            std::span<const Detection> candidate, const MatchOptions& options) {
  const auto find = [&](std::string text) {
    if (findings.size() < kMaxFindings)
      findings.push_back(fmt::format("image '{}': {}", image, text));
  };
  const MatchResult m = match_detections(reference, candidate, options);
  ++images;
  confidence = options.confidence;
  reference_boxes += m.reference_strong;
  candidate_boxes += m.candidate_strong;
  reference_duplicates += m.reference_duplicates;
  candidate_duplicates += m.candidate_duplicates;
  reference_nonfinite += m.reference_nonfinite;
  candidate_nonfinite += m.candidate_nonfinite;
  broken += m.reference_nonfinite == 0 ? m.candidate_nonfinite : 0;
  unmatched_reference += static_cast<std::int64_t>(m.unmatched_reference.size());
  unmatched_candidate += static_cast<std::int64_t>(m.unmatched_candidate.size());
  for (const DetectionPair& pair : m.pairs) {
    if (!pair.gated) continue;
    sum_iou += pair.iou;
    if (matched++ == 0 || pair.iou < min_iou) {
      min_iou = pair.iou;
      min_iou_image = image;
    }
    if (matched == 1 || pair.score_difference > max_score_difference) {
      max_score_difference = pair.score_difference;
      max_score_difference_image = image;
    }
  }
  const double cosine = scores_cosine(reference, candidate);
  if (!std::isnan(cosine) && (std::isnan(min_scores_cosine) || cosine < min_scores_cosine)) {
    min_scores_cosine = cosine;
    min_scores_cosine_image = image;
  }
  for (std::int64_t i : m.unmatched_reference) {
    find(fmt::format("a box of the reference has no partner: {}",
                     describe(reference[static_cast<std::size_t>(i)])));
  }
  for (std::int64_t i : m.unmatched_candidate) {
    find(fmt::format("a box of the candidate has no partner: {}",
                     describe(candidate[static_cast<std::size_t>(i)])));
  }
  if (m.candidate_nonfinite > 0)
    find(fmt::format("Inf or NaN in {} of the candidate",
                     counted(m.candidate_nonfinite, "detection")));
  if (m.top_class == TopClass::kNearTie) ++top_class_near_ties;
  if (m.top_class == TopClass::kDiffers) {
    ++top_class_differs;
    find("the highest-scored boxes are of different classes");
  }

  images_with_boxes += m.reference_strong > 0 ? 1 : 0;
  max_boxes_in_image = std::max(max_boxes_in_image, m.reference_strong);
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const Detection& d = reference[i];
    if (!(d.score > options.confidence) || !std::isfinite(d.score)) continue;
    labels.insert(d.label);
    near_threshold += d.score < options.confidence + TaskSummary::kNearThreshold ? 1 : 0;
    overlapping_classes +=
        std::any_of(reference.begin(), reference.end(), [&](const Detection& other) {
          return other.score > options.confidence && other.label != d.label &&
                 iou(other.box, d.box) >= 0.5;
        });
  }
}

std::vector<Check> task_checks(const TaskSummary& s, const TaskGates& gates) {
  const std::string gate = "gate of " + gates.name;
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  const bool any = s.matched > 0;
  std::vector<Check> checks;
  checks.push_back(sample_check("images compared", s.images, gates.min_images));
  checks.push_back(sample_check("boxes matched", s.matched, gates.min_matched));
  checks.push_back(finite_detections_check(s, gate));
  checks.push_back(make_check("scores cosine, least of the images", s.min_scores_cosine,
                              Comparison::kAtLeast, {gates.scores_cosine, gate},
                              in_image(s.min_scores_cosine_image)));
  checks.push_back(
      make_check("IoU of matched boxes, least", any ? s.min_iou : kNothing, Comparison::kAtLeast,
                 {gates.iou, gate},
                 any ? fmt::format("mean {:.6f}; worst in '{}'", s.mean_iou(), s.min_iou_image)
                     : "no box was matched"));
  checks.push_back(make_check("score difference of matched boxes, largest",
                              any ? s.max_score_difference : kNothing, Comparison::kAtMost,
                              {gates.score_difference, gate},
                              any ? in_image(s.max_score_difference_image) : "no box was matched"));
  if (gates.same_top_class) {
    std::string note;
    if (s.top_class_near_ties > 0) {
      note = fmt::format("not counted: {} turned over", counted(s.top_class_near_ties, "near tie"));
    }
    checks.push_back(
        count_check("images whose top class differs", s.top_class_differs, gate, note));
  }
  if (gates.nothing_unmatched) {
    checks.push_back(count_check(
        "boxes without a partner", s.unmatched_reference + s.unmatched_candidate, gate,
        fmt::format("{} of the reference, {} of the candidate; duplicate queries, not counted: {} "
                    "and {}",
                    s.unmatched_reference, s.unmatched_candidate, s.reference_duplicates,
                    s.candidate_duplicates)));
  }
  return checks;
}

std::optional<Check> feature_check(std::string_view tensor, const TensorError& error,
                                   const TaskGates& gates) {
  if (!gates.features_cosine) return std::nullopt;
  std::string name = fmt::format("{}: cosine", tensor);
  if (!error.cosine) {
    return inconclusive_check(std::move(name), error.compared == 0
                                                   ? "no element is finite on both sides"
                                                   : "an integer tensor has no cosine");
  }
  return make_check(std::move(name), *error.cosine, Comparison::kAtLeast,
                    {*gates.features_cosine, "gate of " + gates.name},
                    fmt::format("relative L2 {:.3g}, max abs {:.3g}, mean abs {:.3g}",
                                error.relative_l2.value_or(0), error.max_abs, error.mean_abs));
}

Coverage coverage(const TaskSummary& s, std::span<const std::string> classes) {
  Coverage c;
  if (s.labels.empty()) {
    c.over = fmt::format("{} without a box above {:g}", counted(s.images, "image"), s.confidence);
    c.not_covered.push_back("detections: the reference found nothing in these images");
    return c;
  }
  std::vector<std::string> seen;
  for (const std::int64_t label : s.labels) {
    const bool named = label >= 0 && static_cast<std::size_t>(label) < classes.size();
    seen.push_back(named ? classes[static_cast<std::size_t>(label)] : fmt::format("{}", label));
  }
  c.over = fmt::format("{}, {} of them with boxes; {} of {} {}", counted(s.images, "image"),
                       s.images_with_boxes, counted(s.matched, "matched box", "matched boxes"),
                       seen.size() == 1 ? "class" : "classes", fmt::join(seen, ", "));
  if (s.max_boxes_in_image < Coverage::kCrowdedScene) {
    c.not_covered.push_back(fmt::format("crowded scenes (at most {} in an image)",
                                        counted(s.max_boxes_in_image, "box", "boxes")));
  }
  c.not_covered.push_back(fmt::format(
      "low confidence (boxes below {:g} are not compared; {} of {} score below {:g})", s.confidence,
      s.near_threshold, s.reference_boxes, s.confidence + TaskSummary::kNearThreshold));
  if (s.labels.size() < 2) {
    c.not_covered.push_back("class confusion (one class was seen)");
  } else {
    c.not_covered.push_back(
        fmt::format("class confusion ({} of another class by IoU 0.5 or more)",
                    counted(s.overlapping_classes, "box overlaps one", "boxes overlap one")));
  }
  return c;
}

std::string to_text(const Coverage& c) {
  return fmt::format("Over {}. Not covered: {}.", c.over, fmt::join(c.not_covered, "; "));
}

Json to_json(const TaskGates& gates) {
  Json json;
  json["name"] = gates.name;
  if (gates.features_cosine) json["features_cosine"] = *gates.features_cosine;
  json["scores_cosine"] = gates.scores_cosine;
  json["iou"] = gates.iou;
  json["score_difference"] = gates.score_difference;
  json["same_top_class"] = gates.same_top_class;
  json["nothing_unmatched"] = gates.nothing_unmatched;
  json["min_images"] = gates.min_images;
  json["min_matched"] = gates.min_matched;
  return json;
}

Json to_json(const TaskSummary& s) {
  Json json;
  json["images"] = s.images;
  json["images_with_boxes"] = s.images_with_boxes;
  json["confidence"] = s.confidence;
  json["reference_boxes"] = s.reference_boxes;
  json["candidate_boxes"] = s.candidate_boxes;
  json["matched"] = s.matched;
  json["unmatched_reference"] = s.unmatched_reference;
  json["unmatched_candidate"] = s.unmatched_candidate;
  json["reference_duplicates"] = s.reference_duplicates;
  json["candidate_duplicates"] = s.candidate_duplicates;
  json["reference_nonfinite"] = s.reference_nonfinite;
  json["candidate_nonfinite"] = s.candidate_nonfinite;
  if (s.matched > 0) {
    json["min_iou"] = json_number(s.min_iou);
    json["min_iou_image"] = s.min_iou_image;
    json["mean_iou"] = json_number(s.mean_iou());
    json["max_score_difference"] = json_number(s.max_score_difference);
    json["max_score_difference_image"] = s.max_score_difference_image;
  }
  if (!std::isnan(s.min_scores_cosine)) {
    json["min_scores_cosine"] = json_number(s.min_scores_cosine);
    json["min_scores_cosine_image"] = s.min_scores_cosine_image;
  }
  json["broken"] = s.broken;
  json["top_class_differs"] = s.top_class_differs;
  json["top_class_near_ties"] = s.top_class_near_ties;
  json["max_boxes_in_image"] = s.max_boxes_in_image;
  json["near_threshold"] = s.near_threshold;
  json["overlapping_classes"] = s.overlapping_classes;
  json["labels"] = std::vector<std::int64_t>(s.labels.begin(), s.labels.end());
  json["findings"] = s.findings;
  return json;
}

Json to_json(const Coverage& c) {
  Json json;
  json["over"] = c.over;
  json["not_covered"] = c.not_covered;
  return json;
}

}  // namespace tenonnx
