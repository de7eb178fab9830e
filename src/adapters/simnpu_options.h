// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Options of the simulated provider: as text "key=value" in an address and in a session's
// configuration, and as values in the provider. docs/how_to/provider.md describes them for users.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "tenonnx/base.h"

namespace tenonnx {

inline constexpr std::string_view kSimNpuDevice = "simnpu";  // where no device is named

struct SimNpuOptions {
  std::string device{kSimNpuDevice};  // devices/<device>.json
  int threads = 0;                    // intra-op, of the sessions that compute partitions
  std::string report;                 // a file that the provider writes its own record to
  std::set<std::string> pinned;       // affinity=Softmax=cpu+Relu=cpu: operators left to the CPU

  // Imitations of faults.
  std::string soc;        // any other than the device's name: nothing is claimed
  std::string backend;    // a library file; one that does not exist: nothing is claimed
  std::string no_kernel;  // operators that compile and have no kernel at run time
  std::string relabel;    // operators labelled as the device's and computed on the CPU
  int drop_binary = 0;    // the partition, from 1, whose context is written without binary
  bool affinity_drops_all = false;  // pinning one operator leaves everything to the CPU
};

// From "key" -> "value". InvalidArgument names an unknown key with those that exist, or a value
// that cannot be read.
Result<SimNpuOptions> simnpu_options(const std::map<std::string, std::string>& given);
// The keys, each with its form: for messages and for reading a session's configuration.
const std::map<std::string, std::string>& simnpu_option_forms();

}  // namespace tenonnx
