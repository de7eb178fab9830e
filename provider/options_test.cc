// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapters/address.h"
#include "adapters/provider.h"
#include "adapters/simnpu_options.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SimNpuOptions, OfAnAddress) {
  const auto options =
      simnpu_options_of("provider:simnpu:htp-v73,affinity=Softmax=cpu+Relu=cpu,drop_binary=2");
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->device, "htp-v73");
  EXPECT_THAT(options->pinned, ElementsAre("Relu", "Softmax"));
  EXPECT_EQ(options->drop_binary, 2);
  EXPECT_FALSE(simnpu_options_of("cpu").has_value());
}

struct BadAddress {
  const char* address;
  std::vector<const char*> parts;
};

TEST(SimNpuOptions, BadAddressesAreNamed) {
  const std::vector<BadAddress> cases = {
      {"provider:qnn", {"there is no provider 'qnn'", "provider:simnpu[:DEVICE]"}},
      {"provider:simnpu:", {"no device behind ':'", "provider:simnpu[:DEVICE]"}},
      {"provider:simnpu,relabel", {"'relabel' is no KEY=VALUE"}},
      {"provider:simnpu,sok=1", {"no option 'sok'", "'soc'"}},
      {"provider:simnpu,soc=1,soc=2", {"'soc' is given twice"}},
      {"provider:simnpu,threads=-1", {"option 'threads' is '-1'", "0 to 1024"}},
      {"provider:simnpu,affinity=Softmax", {"'Softmax'", "OPERATOR=cpu"}},
      {"provider:simnpu:no-such-npu", {"no device 'no-such-npu'", "simnpu"}},
      {"provider:simnpu:htp-v73", {"no \"supported\" section", "htp-v73.json"}},
  };
  for (const BadAddress& bad : cases) {
    const Status status = make_executor(bad.address).status();
    EXPECT_FALSE(status.ok()) << bad.address;
    for (const char* part : bad.parts) EXPECT_THAT(status.message(), HasSubstr(part));
  }
}

TEST(SimNpuOptions, TheLibraryThatDoesNotExistIsNamed) {
  ASSERT_EQ(setenv("TENONNX_SIMNPU", "/no/such/libtenonnx_simnpu.so", 1), 0);
  const Status status = make_executor("provider:simnpu").status();
  unsetenv("TENONNX_SIMNPU");
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("/no/such/libtenonnx_simnpu.so"), HasSubstr("TENONNX_SIMNPU")));
}

}  // namespace
}  // namespace tenonnx
