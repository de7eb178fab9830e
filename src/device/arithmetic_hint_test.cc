// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "device/arithmetic_hint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ArithmeticHint, NamesTheDeviceThatATargetSimulates) {
  EXPECT_THAT(no_arithmetic(*find_device("sim-htp")),
              AllOf(HasSubstr("device 'sim-htp'"), HasSubstr("has no arithmetic section"),
                    HasSubstr("runs sim:htp-v73; name 'htp-v73'")));
}

TEST(ArithmeticHint, ListsTheFilesThatHaveOne) {
  EXPECT_THAT(no_arithmetic(*find_device("cpu")),
              AllOf(HasSubstr("these have one: "), HasSubstr("htp-v73"), HasSubstr("qcs9075"),
                    Not(HasSubstr("sim-htp"))));
}

}  // namespace
}  // namespace tenonnx
