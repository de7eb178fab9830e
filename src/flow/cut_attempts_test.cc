// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/cut_attempts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/status.h"
#include "model/text.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Device target(const std::string& whole) {
  Device device;
  device.name = "t";
  device.roles = {{"model", whole}, {"encoder", whole}, {"decoder", "cpu"}};
  return device;
}

class Attempts : public ::testing::Test {
 protected:
  Attempts() {
    auto model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float[4] x) => (float[4] y) { a = Relu (x) y = Neg (a) })");
    EXPECT_TRUE(model.ok());
    model_ = std::move(*model);
    contract_.cut = {"a"};
  }
  CutAttempt first(const std::string& option, const std::string& whole) {
    auto attempt = first_attempt(option, contract_, target(whole), model_);
    EXPECT_TRUE(attempt.ok()) << attempt.status().message();
    return attempt.ok() ? *attempt : CutAttempt();
  }
  Model model_;
  Contract contract_;
};

TEST_F(Attempts, TheContractsCutIsTheFirst) {
  const CutAttempt attempt = first("", "sim:htp-v73");
  EXPECT_THAT(attempt.cut, ElementsAre("a"));
  EXPECT_TRUE(attempt.named);
}

// Only the vendor's compiler knows whether it takes the whole graph, and what comes out of it.
TEST_F(Attempts, WhereSegmentsShipCompiledTheWholeGraphIs) {
  const CutAttempt attempt = first("", "qnn:soc=43,arch=73");
  EXPECT_THAT(attempt.cut, IsEmpty());
  EXPECT_FALSE(attempt.named) << "the contract's cut is to follow";
  EXPECT_THAT(attempt.origin, HasSubstr("whole graph (tried before the contract's cut)"));
  const FurtherAttempts further =
      further_attempts(target("qnn:soc=43,arch=73"), model_, contract_.cut);
  ASSERT_FALSE(further.attempts.empty());
  EXPECT_THAT(further.attempts[0].cut, ElementsAre("a"));
  EXPECT_EQ(further.attempts[0].origin, "cut by the contract");
}

TEST_F(Attempts, WhatIsNamedIsAllThatIsTried) {
  EXPECT_THAT(first("a", "qnn:soc=43,arch=73").cut, ElementsAre("a"));
  EXPECT_TRUE(first("none", "qnn:soc=43,arch=73").named);
}

}  // namespace
}  // namespace tenonnx
