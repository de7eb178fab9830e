// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MakeExecutor, TheKindsThatExist) {
  for (const char* address : {"cpu", "sim:htp-v73"}) {
    const auto executor = make_executor(address);
    ASSERT_TRUE(executor.ok()) << executor.status().message();
    EXPECT_EQ((*executor)->address(), address);
  }
}

TEST(MakeExecutor, UnknownKindsListTheKnownOnes) {
  for (const char* address : {"gpu", "", ":", "CPU", "simulated:htp-v73"}) {
    const Status status = make_executor(address).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << address;
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("unknown executor address"), HasSubstr("cpu, sim:NAME")));
  }
}

TEST(MakeExecutor, WhatFollowsTheKind) {
  EXPECT_THAT(make_executor("cpu:1").status().message(), HasSubstr("takes nothing after it"));
  EXPECT_THAT(make_executor("cpu:").status().message(), HasSubstr("ends in ':'"));
  EXPECT_THAT(make_executor("sim:").status().message(), HasSubstr("ends in ':'"));
  EXPECT_THAT(make_executor("sim").status().message(),
              AllOf(HasSubstr("needs the name of a device"), HasSubstr("sim:htp-v73")));
  EXPECT_THAT(make_executor("sim:htp-v99").status().message(),
              AllOf(HasSubstr("no device 'htp-v99'"), HasSubstr("htp-v73"),
                    HasSubstr("To add a directory of device files, name it in TENONNX_DEVICES")));
  EXPECT_THAT(make_executor("sim:../devices/htp-v73").status().message(),
              HasSubstr("not the name of a device"));
}

TEST(MakeExecutor, ADeviceWithoutArithmeticCannotBeSimulated) {
  const Status status = make_executor("sim:sim-htp").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("'sim-htp'"), HasSubstr("no \"arithmetic\" section"),
                    HasSubstr("it is a target")));
}

TEST(MakeExecutor, AFileMayNotNameAFileToBeWritten) {
  const std::string address = "provider:simnpu,report=/tmp/mine.json";
  EXPECT_TRUE(make_executor(address).ok());
  const Status status = make_executor(address, AddressOrigin::kFile).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("report"), HasSubstr("would write a file")));
  EXPECT_TRUE(make_executor("provider:simnpu,soc=v68", AddressOrigin::kFile).ok());
}

}  // namespace
}  // namespace tenonnx
