// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/qnn_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

QnnOptions read(std::string_view rest, QnnPlace place = QnnPlace::kEmulator) {
  auto options = qnn_options(rest, place);
  EXPECT_TRUE(options.ok()) << options.status().message();
  return options.ok() ? *options : QnnOptions();
}

std::string error(std::string_view rest, QnnPlace place = QnnPlace::kEmulator) {
  const auto options = qnn_options(rest, place);
  if (options.ok()) return "no error";
  EXPECT_EQ(options.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(options.status().message(), HasSubstr("executor 'qnn:" + std::string(rest) + "'"));
  return options.status().message();
}

TEST(QnnOptions, BecomeTheProvidersOptions) {
  const QnnOptions options =
      read("soc=43,arch=73,precision=fp16,perf=burst,vtcm=8,core=1,optimize=3,priority=high");
  EXPECT_EQ(options.soc, 43);
  EXPECT_EQ(options.arch, 73);
  EXPECT_THAT(
      options.provider,
      ElementsAre(Pair("backend_type", "htp"), Pair("device_id", "1"),
                  Pair("enable_htp_fp16_precision", "1"), Pair("htp_arch", "73"),
                  Pair("htp_graph_finalization_optimization_mode", "3"),
                  Pair("htp_performance_mode", "burst"), Pair("qnn_context_priority", "high"),
                  Pair("soc_model", "43"), Pair("vtcm_mb", "8")));
  EXPECT_THAT(options.record(), AllOf(HasSubstr("soc_model=43"), HasSubstr("vtcm_mb=8"),
                                      HasSubstr("htp_performance_mode=burst")));
}

TEST(QnnOptions, PassAffinityThrough) {
  const QnnOptions pinned = read("soc=43,affinity=TopK=cpu+Erf=cpu");
  EXPECT_THAT(pinned.pinned, ElementsAre("Erf", "TopK"));
  EXPECT_EQ(qnn_affinity_json(pinned.pinned), R"({"op_type":{"Erf":"cpu","TopK":"cpu"}})");
  EXPECT_THAT(pinned.record(), HasSubstr("op_affinity=Erf+TopK=cpu"));
  EXPECT_EQ(read("soc=43,op_affinity=/a/own.json").affinity_file, "/a/own.json");
  EXPECT_THAT(error("soc=43,affinity=TopK"), HasSubstr("'affinity' has 'TopK': OPERATOR=cpu"));
  EXPECT_THAT(error("soc=43,affinity=TopK=cpu,op_affinity=f"), HasSubstr("both given"));
}

TEST(QnnOptions, NeedAChip) {
  EXPECT_THAT(error(""), AllOf(HasSubstr("'soc' is missing"), HasSubstr("43"), HasSubstr("88")));
  EXPECT_THAT(error("arch=73"), AllOf(HasSubstr("'soc' is missing"), HasSubstr("code 1002")));
  EXPECT_THAT(error("soc=v73"), HasSubstr("'soc' is 'v73': the number of the chip is needed"));
  EXPECT_THAT(error("soc=0"), HasSubstr("'soc' is '0'"));
}

TEST(QnnOptions, RefuseAChipThatTheEmulatorDoesNotKnow) {
  EXPECT_THAT(error("soc=9999"),
              AllOf(HasSubstr("'soc' is 9999"), HasSubstr("QNN_DEVICE_ERROR_INVALID_CONFIG"),
                    HasSubstr("These work: 36, 43, 52, 57, 60, 69, 72, 77, 87, 88")));
  EXPECT_THAT(error("soc=30"), AllOf(HasSubstr("HTP v68, which has no fp16"), HasSubstr("43")));
  EXPECT_EQ(read("soc=9999", QnnPlace::kBoard).soc, 9999) << "what a board is, the board knows";
}

TEST(QnnOptions, RefuseWhatFallsToTheCpuInSilence) {
  EXPECT_THAT(error("soc=43,backend=cpu"),
              AllOf(HasSubstr("'backend' is 'cpu'"), HasSubstr("the provider takes nothing"),
                    HasSubstr("name the executor 'cpu'")));
  EXPECT_THAT(error("soc=43,backend=gpu"), HasSubstr("every node runs on ONNX Runtime's own CPU"));
  EXPECT_THAT(error("soc=43,backend=saver"), HasSubstr("only htp is a device"));
  EXPECT_EQ(read("soc=43,backend=htp").provider.at("backend_type"), "htp");
}

TEST(QnnOptions, RefuseWhatTheProviderWouldIgnore) {
  EXPECT_THAT(error("soc=43,arch=81"),
              AllOf(HasSubstr("soc 43 (SM8550) is an HTP v73"), HasSubstr("give arch=73")));
  EXPECT_THAT(error("soc=88,arch=73"), HasSubstr("soc 88 (SC8480XP) is an HTP v81"));
  EXPECT_THAT(error("soc=72,arch=68"), HasSubstr("HTP v68 has no fp16"));
  EXPECT_THAT(error("soc=43,arch=99"),
              AllOf(HasSubstr("'arch' is '99', allowed: 68, 69, 73"), HasSubstr("take no notice")));
  EXPECT_THAT(error("soc=43,perf=fast"), HasSubstr("'perf' is 'fast', allowed: burst, balanced"));
  EXPECT_THAT(error("soc=43,socs=1"), AllOf(HasSubstr("no option 'socs'"), HasSubstr("'soc'")));
  EXPECT_THAT(error("soc=43,vtcm=0"), HasSubstr("'vtcm' is '0', allowed: a number from 1 to 64"));
  EXPECT_THAT(error("soc=43,optimize=4"), HasSubstr("a number from 0 to 3"));
  EXPECT_THAT(error("soc=43,precision=int8"),
              HasSubstr("'precision' is 'int8', allowed: fp16, bf16"));
  EXPECT_THAT(error("soc=43,precision=bf16"), HasSubstr("needs a soc from 88 on, got 43"));
  EXPECT_EQ(read("soc=88,precision=bf16").provider.count("htp_bf16_enable"), 1U);
  EXPECT_THAT(error("soc=43,perf"), HasSubstr("'perf' is no KEY=VALUE"));
  EXPECT_THAT(error("soc=43,perf="), HasSubstr("'perf=' is no KEY=VALUE"));
  EXPECT_THAT(error("soc=43,soc=60"), HasSubstr("'soc' is given twice"));
}

}  // namespace
}  // namespace tenonnx
