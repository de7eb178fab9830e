// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The graph level on observations that are made up, so that each of its three outcomes is seen.
#include "flow/cut_proof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenonnx {
namespace {

using ::testing::HasSubstr;

Contract raw_contract() {
  Contract contract;
  contract.outputs.kind = OutputKind::kRaw;
  return contract;
}

// Two elements of an output, and one detection.
Observation observe(float a, float b) {
  Observation out;
  out.outputs.emplace("logits", Tensor::from<float>(DType::kFloat32, {1, 2}, {a, b}));
  out.detections = {{0, 0.9F, {0, 0, 10, 10}}};
  return out;
}

// With optimisation disabled the whole gives `whole`, the parts `parts`.
CutProof proof_of(const Observation& whole, const Observation& parts, int* calls = nullptr) {
  const auto run = [calls](const Observation& observation) {
    return [calls, observation](const ReferenceInput&) -> Result<Observation> {
      if (calls != nullptr) ++*calls;
      return observation;
    };
  };
  return CutProof("cut", raw_contract(), run(whole), run(parts));
}

ReferenceInput input() {
  ReferenceInput out;
  out.name = "a.png";
  return out;
}

TEST(CutProof, IdenticalIsAPassAndNeedsNothingElse) {
  int calls = 0;
  CutProof proof = proof_of(observe(0, 0), observe(0, 0), &calls);
  ASSERT_TRUE(proof.add(input(), observe(1, 2), observe(1, 2)).ok());
  EXPECT_EQ(proof.verdict(), Verdict::kPass);
  EXPECT_FALSE(proof.fusion_crosses());
  EXPECT_EQ(calls, 0);
  ASSERT_EQ(proof.checks().size(), 1u);
  EXPECT_EQ(proof.checks()[0].value, 0);
}

TEST(CutProof, NoInputIsNoPass) {
  CutProof proof = proof_of(observe(0, 0), observe(0, 0));
  EXPECT_EQ(proof.verdict(), Verdict::kInconclusive);
}

TEST(CutProof, AFusionThatCrossesIsNamedAndPasses) {
  // Disabling optimisation moves the whole by 1e-6 = the floor; the cut moves it by 1.5e-6, below
  // twice that.
  CutProof proof = proof_of(observe(1.000001F, 2), observe(1.000001F, 2));
  ASSERT_TRUE(proof.add(input(), observe(1, 2), observe(1.0000015F, 2)).ok());
  EXPECT_EQ(proof.verdict(), Verdict::kPass);
  EXPECT_TRUE(proof.fusion_crosses());
  EXPECT_THAT(proof.checks()[0].note, HasSubstr("a fusion crosses the cut"));
}

TEST(CutProof, BeyondTheFloorTheCutIsWrong) {
  CutProof proof = proof_of(observe(1.000001F, 2), observe(1.000001F, 2));
  ASSERT_TRUE(proof.add(input(), observe(1, 2), observe(1.00001F, 2)).ok());
  EXPECT_EQ(proof.verdict(), Verdict::kFail);
}

TEST(CutProof, DifferentWithoutOptimisationTheCutIsWrong) {
  CutProof proof = proof_of(observe(1, 2), observe(1, 2.5F));
  ASSERT_TRUE(proof.add(input(), observe(1, 2), observe(1, 2.5F)).ok());
  EXPECT_EQ(proof.verdict(), Verdict::kFail);
  ASSERT_EQ(proof.checks().size(), 1u);  // nothing else is said
  EXPECT_EQ(proof.checks()[0].value, 1);
  EXPECT_THAT(proof.checks()[0].note, HasSubstr("'logits'"));
}

TEST(CutProof, AMissingOrReshapedOutputIsADifference) {
  Observation reshaped = observe(1, 2);
  reshaped.outputs.at("logits") = *reshaped.outputs.at("logits").reshaped({2, 1});
  CutProof proof = proof_of(observe(1, 2), reshaped);
  ASSERT_TRUE(proof.add(input(), observe(1, 2), reshaped).ok());
  EXPECT_EQ(proof.verdict(), Verdict::kFail);
  Observation missing = observe(1, 2);
  missing.outputs.clear();
  CutProof other = proof_of(observe(1, 2), missing);
  ASSERT_TRUE(other.add(input(), observe(1, 2), missing).ok());
  EXPECT_EQ(other.verdict(), Verdict::kFail);
}

TEST(CutProof, ALaterInputCanFail) {
  CutProof proof = proof_of(observe(1, 2), observe(1, 3));
  ASSERT_TRUE(proof.add(input(), observe(1, 2), observe(1, 2)).ok());
  EXPECT_EQ(proof.verdict(), Verdict::kPass);
  ASSERT_TRUE(proof.add(input(), observe(1, 2), observe(1, 3)).ok());
  EXPECT_EQ(proof.verdict(), Verdict::kFail);
}

}  // namespace
}  // namespace tenonnx
