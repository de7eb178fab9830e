// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/system_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "base/temporary_directory.h"
#include "tenonnx/base.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;

class MachineFactsTest : public testing::Test {
 protected:
  void write(const fs::path& relative, const std::string& text) {
    fs::create_directories((root_ / relative).parent_path());
    std::ofstream(root_ / relative) << text;
  }
  std::map<std::string, std::string> facts() {
    const Facts list = machine_facts(root_);
    return {list.begin(), list.end()};
  }
  TemporaryDirectory directory_;
  const fs::path& root_ = directory_.path();
};

TEST_F(MachineFactsTest, ServerWithHyperThreadsAndALimit) {
  write("etc/os-release", "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
  write("proc/cpuinfo",
        "processor\t: 0\nmodel name\t: Some CPU @ 2.10GHz\n\nprocessor\t: 1\n"
        "model name\t: another\n");
  write("proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\n");
  for (int i = 0; i < 4; ++i) {
    const std::string cpu = "sys/devices/system/cpu/cpu" + std::to_string(i);
    write(cpu + "/topology/core_id", std::to_string(i / 2) + "\n");
    write(cpu + "/topology/physical_package_id", "0\n");
    write(cpu + "/cpufreq/scaling_governor", i == 3 ? "performance\n" : "powersave\n");
  }
  write("sys/devices/system/cpu/cpufreq/policy0/x", "not a cpu");
  write("proc/self/cgroup", "0::/system.slice/job.scope\n");
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/system.slice/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/system.slice/job.scope/memory.max", "4294967296\n");
  auto found = facts();
  EXPECT_EQ(found["system"], "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(found["cpu"], "Some CPU @ 2.10GHz");
  EXPECT_EQ(found["physical cores"], "2");
  EXPECT_EQ(found["logical cores"], "4");
  EXPECT_EQ(found["control group cpu limit"], "1.50");
  EXPECT_EQ(found["governor"], "performance, powersave");
  EXPECT_EQ(found["memory"], "16.0 GiB (control group limit 4.0 GiB)");
}

TEST_F(MachineFactsTest, BoardWithoutAModelName) {
  write("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4b\n");
  write("proc/device-tree/model", std::string("Radxa ROCK 5B\0", 14));
  write("sys/devices/system/cpu/cpu0/topology/core_id", "0\n");
  write("sys/devices/system/cpu/cpu1/online", "0\n");
  auto found = facts();
  EXPECT_EQ(found["cpu"], "Radxa ROCK 5B, implementer 0x41 part 0xd4b");
  EXPECT_EQ(found["logical cores"], "1");
}

TEST_F(MachineFactsTest, WhatIsMissingIsSaid) {
  auto found = facts();
  for (const char* key : {"system", "cpu", "physical cores", "logical cores", "governor", "memory"})
    EXPECT_EQ(found[key], "not available") << key;
  EXPECT_EQ(found["control group cpu limit"], "none");
}

TEST_F(MachineFactsTest, ControlGroupOfVersion1) {
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(facts()["control group cpu limit"], "0.50");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(facts()["control group cpu limit"], "none");
}

TEST(SystemInfoTest, FactByName) {
  const Facts facts = {{"a", "1"}, {"b", "2"}};
  EXPECT_EQ(fact_of(facts, "b"), "2");
  EXPECT_EQ(fact_of(facts, "c"), "not available");
}

TEST(SystemInfoTest, ThisMachine) {
  std::map<std::string, std::string> found;
  for (const auto& [key, value] : system_info()) {
    EXPECT_FALSE(value.empty()) << key;
    EXPECT_TRUE(found.emplace(key, value).second) << key << " occurs twice";
  }
  EXPECT_EQ(found["tenonnx"], version());
  EXPECT_EQ(found["logical cores"], std::to_string(sysconf(_SC_NPROCESSORS_ONLN)));
  EXPECT_EQ(found["highest opset"], "26");
  EXPECT_EQ(found["highest IR version"], "13");
  EXPECT_THAT(found["onnxruntime"], testing::StartsWith("1."));
  EXPECT_TRUE(fs::exists(found["onnxruntime path"]));
  EXPECT_THAT(found["protobuf"], testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

}  // namespace
}  // namespace tenonnx
