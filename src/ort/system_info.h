// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The versions and the facts of the machine that every result carries: a latency without them is
// no figure.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenonnx {

// In the order in which they are printed.
using Facts = std::vector<std::pair<std::string, std::string>>;

// tenonnx, onnxruntime (opened for it; "not available: <reason>" where there is none), its path and
// build, onnx with the highest opset and IR version that are taken, protobuf, compiler.
Facts version_facts();

// System, kernel, architecture, CPU, cores (physical, logical, usable under the affinity mask,
// limit of the control group), governor, memory. What the machine does not tell is
// "not available". `root` stands for "/" and is another directory in tests; kernel, architecture
// and affinity always are this process's.
Facts machine_facts(const std::filesystem::path& root = "/");

// Both.
Facts system_info();

// The value of a fact; "not available" where it is not among them.
std::string fact_of(const Facts& facts, std::string_view name);

}  // namespace tenonnx
