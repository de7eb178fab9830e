// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "metrics/task_gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tenonnx {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Detections = std::vector<Detection>;

Box box(float x, float y = 0) { return {x, y, x + 10, y + 10}; }

Detections scene() { return {{0, 0.9F, box(0)}, {1, 0.8F, box(50)}, {2, 0.6F, box(100)}}; }

TaskSummary summary_of(const Detections& reference, const Detections& candidate, int images = 2) {
  TaskSummary s;
  for (int i = 0; i < images; ++i)
    s.add_image("image_" + std::to_string(i) + ".png", reference, candidate);
  return s;
}

// The names of the checks that do not pass.
std::vector<std::string> not_passed(const std::vector<Check>& checks) {
  std::vector<std::string> names;
  for (const Check& c : checks)
    if (c.verdict != Verdict::kPass) names.push_back(c.name);
  return names;
}

TEST(TaskGates, AgreedFigures) {
  const TaskGates cpu = TaskGates::cpu_reexport();
  EXPECT_FALSE(cpu.features_cosine.has_value());
  EXPECT_EQ(cpu.scores_cosine, 0.999);
  EXPECT_EQ(cpu.iou, 0.99);
  EXPECT_EQ(cpu.score_difference, 0.001);
  const TaskGates chain = TaskGates::heterogeneous();
  EXPECT_EQ(*chain.features_cosine, 0.99);
  EXPECT_EQ(chain.scores_cosine, 0.99);
  EXPECT_EQ(chain.iou, 0.95);
  EXPECT_EQ(chain.score_difference, 0.05);
  EXPECT_TRUE(chain.same_top_class && chain.nothing_unmatched);
}

TEST(TaskChecks, SameOutputsPassAlsoWhenPermuted) {
  const Detections r = scene();
  const Detections c = {r[2], r[0], r[1]};
  for (const TaskGates& gates : {TaskGates::cpu_reexport(), TaskGates::heterogeneous()}) {
    const auto checks = task_checks(summary_of(r, c), gates);
    EXPECT_EQ(overall_verdict(checks), Verdict::kPass);
    for (const Check& check : checks) EXPECT_FALSE(check.limit.origin.empty()) << check.name;
  }
}

// Each damage alone trips the gate that is there for it.
TEST(TaskChecks, EachGateCatchesItsDamage) {
  const auto failed = [](const Detections& c) {
    return not_passed(task_checks(summary_of(scene(), c, 3), TaskGates::heterogeneous()));
  };
  Detections c = scene();
  c[2].box = box(100.3F);  // IoU 9.7 / 10.3 = 0.942
  EXPECT_EQ(failed(c), std::vector<std::string>{"IoU of matched boxes, least"});
  c = scene();
  c[2].score = 0.54F;
  EXPECT_EQ(failed(c), std::vector<std::string>{"score difference of matched boxes, largest"});
  c = scene();
  c.push_back({2, 0.26F, box(200)});
  EXPECT_THAT(failed(c), Contains("boxes without a partner"));
  c = scene();
  c[1].label = 3;
  EXPECT_EQ(failed(c), std::vector<std::string>{"boxes without a partner"});
  c = scene();
  c[0].label = 3;
  EXPECT_THAT(failed(c), Contains("images whose top class differs"));
  c = scene();
  for (Detection& d : c) d.score -= 0.04F;  // within the score gate each
  for (int i = 0; i < 300; ++i) c.push_back({0, 0.1F, box(300)});
  EXPECT_EQ(failed(c), std::vector<std::string>{"scores cosine, least of the images"});
  c = scene();
  c.push_back({0, std::numeric_limits<float>::quiet_NaN(), box(0)});
  EXPECT_THAT(failed(c), Contains("detections with Inf or NaN where the reference has none"));
}

TEST(TaskChecks, NonFiniteReferenceIsInconclusive) {
  Detections r = scene();
  r.push_back({0, 0.1F, {0, 0, std::numeric_limits<float>::infinity(), 1}});
  EXPECT_EQ(overall_verdict(task_checks(summary_of(r, r), TaskGates::heterogeneous())),
            Verdict::kInconclusive);
}

// The two bounds themselves are enough: 2 images, 5 boxes.
TEST(TaskChecks, SmallSampleIsInconclusive) {
  const TaskGates gates = TaskGates::heterogeneous();
  const auto verdict = [&](int boxes_first, int boxes_second, int images) {
    TaskSummary s;
    for (int i = 0; i < images; ++i) {
      Detections d;
      for (int k = 0; k < (i == 0 ? boxes_first : boxes_second); ++k)
        d.push_back({0, 0.9F, box(20.0F * static_cast<float>(k))});
      s.add_image("i", d, d);
    }
    return overall_verdict(task_checks(s, gates));
  };
  EXPECT_EQ(verdict(3, 2, 2), Verdict::kPass);
  EXPECT_EQ(verdict(2, 2, 2), Verdict::kInconclusive);
  EXPECT_EQ(verdict(9, 0, 1), Verdict::kInconclusive);
  EXPECT_EQ(verdict(0, 0, 3), Verdict::kInconclusive);
  EXPECT_EQ(overall_verdict(task_checks(TaskSummary(), gates)), Verdict::kInconclusive);
}

// All detections lost: nothing matched, but not for want of images.
TEST(TaskChecks, LostDetectionsFailHoweverFewMatched) {
  const auto checks = task_checks(summary_of(scene(), {}), TaskGates::heterogeneous());
  EXPECT_EQ(overall_verdict(checks), Verdict::kFail);
  EXPECT_EQ(overall_verdict(task_checks(summary_of(scene(), {}, 1), TaskGates::heterogeneous())),
            Verdict::kFail);
}

TEST(TaskSummary, NamesTheImageAndTheBox) {
  TaskSummary s;
  Detections c = scene();
  s.add_image("good.png", scene(), c);
  c[1].box = box(50.2F);
  c.pop_back();
  s.add_image("bad.png", scene(), c);
  EXPECT_EQ(s.min_iou_image, "bad.png");
  EXPECT_NEAR(s.min_iou, 9.8 / 10.2, 1e-6);  // float32 coordinates near 50: 4e-6 pixels
  EXPECT_NEAR(s.mean_iou(), (4 + 9.8 / 10.2) / 5, 1e-6);
  EXPECT_EQ(s.matched, 5);
  ASSERT_EQ(s.findings.size(), 1u);
  EXPECT_THAT(s.findings[0], HasSubstr("image 'bad.png'"));
  EXPECT_THAT(s.findings[0], HasSubstr("class 2, score 0.600, box [100.0, 0.0, 110.0, 10.0]"));
}

TEST(TaskSummary, FindingsAreLimited) {
  Detections many;
  for (int i = 0; i < 100; ++i) many.push_back({0, 0.9F, box(20.0F * static_cast<float>(i))});
  EXPECT_EQ(summary_of(many, {}).findings.size(), TaskSummary::kMaxFindings);
}

TEST(FeatureCheck, GatesTheCosineWhereTheGatesSaySo) {
  const Tensor r = Tensor::from<float>(DType::kFloat32, {2}, {3, 4});
  const Tensor c = Tensor::from<float>(DType::kFloat32, {2}, {4, 3});
  const TensorError error = *compare_tensors(r, c);
  const auto check = feature_check("feature_0", error, TaskGates::heterogeneous());
  ASSERT_TRUE(check.has_value());
  EXPECT_EQ(check->verdict, Verdict::kFail);
  EXPECT_THAT(check->note, HasSubstr("relative L2 0.283"));
  EXPECT_FALSE(feature_check("feature_0", error, TaskGates::cpu_reexport()).has_value());
  const Tensor labels(DType::kInt64, {2});
  EXPECT_EQ(feature_check("labels", *compare_tensors(labels, labels), TaskGates::heterogeneous())
                ->verdict,
            Verdict::kInconclusive);
}

TEST(Coverage, IsComputedFromTheImages) {
  TaskSummary s;
  const Detections overlapping = {{0, 0.9F, box(0)}, {1, 0.3F, box(1)}};
  s.add_image("a", overlapping, overlapping);
  s.add_image("b", {}, {});
  const Coverage c = coverage(s);
  EXPECT_EQ(c.over, "2 images, 1 of them with boxes; 2 matched boxes of classes 0, 1");
  const std::vector<std::string> names = {"circle"};  // and none for the second
  EXPECT_EQ(coverage(s, names).over,
            "2 images, 1 of them with boxes; 2 matched boxes of classes circle, 1");
  ASSERT_EQ(c.not_covered.size(), 3u);
  EXPECT_EQ(c.not_covered[0], "crowded scenes (at most 2 boxes in an image)");
  EXPECT_THAT(c.not_covered[1], HasSubstr("1 of 2 score below 0.35"));
  EXPECT_THAT(c.not_covered[2], HasSubstr("2 boxes overlap one of another class"));
  EXPECT_THAT(to_text(c), HasSubstr("Not covered: crowded scenes"));

  Detections crowd;
  for (int i = 0; i < 20; ++i) crowd.push_back({0, 0.9F, box(20.0F * static_cast<float>(i))});
  TaskSummary crowded;
  crowded.add_image("c", crowd, crowd);
  EXPECT_THAT(coverage(crowded).not_covered[0], HasSubstr("low confidence"));
  EXPECT_THAT(coverage(crowded).not_covered[1], HasSubstr("one class was seen"));
  EXPECT_THAT(coverage(TaskSummary()).not_covered[0], HasSubstr("found nothing"));
}

TEST(TaskSummary, JsonLeavesOutWhatWasNotMeasured) {
  EXPECT_FALSE(to_json(TaskSummary()).contains("min_iou"));
  EXPECT_FALSE(to_json(TaskSummary()).contains("min_scores_cosine"));
  const Json json = to_json(summary_of(scene(), scene()));
  EXPECT_EQ(json["matched"], 6);
  EXPECT_EQ(json["min_iou"], 1.0);
  EXPECT_EQ(json["labels"], Json({0, 1, 2}));
}

}  // namespace
}  // namespace tenonnx
