// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What stands behind "qnn:" in an address, "soc=43,arch=73,precision=fp16,perf=burst", as options
// of Qualcomm's provider. That provider takes no notice of a key that it does not know, warns in
// its log of a value that it does not know, and lets everything fall back to the CPU: so both are
// refused here. Source: QNN Execution Provider, "Configuration Options" (documentation of
// onnxruntime-qnn).
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tenonnx/base.h"

namespace tenonnx {

// As the session, its profile and its assignment record name it.
inline constexpr std::string_view kQnnProvider = "QNNExecutionProvider";

// Which of the two the options are for: the values of `soc` that work differ.
enum class QnnPlace { kEmulator, kBoard };
// x86 has the emulator, everything else is a board.
QnnPlace qnn_place();
// Whether what runs at this address runs on the vendor's emulator: its time is not the device's.
bool is_emulated(std::string_view address);

struct QnnOptions {
  int soc = 0;                     // number of the chip: option soc_model
  int arch = 0;                    // 73 is v73: option htp_arch; 0 leaves it to the provider
  std::string precision = "fp16";  // of a float32 model: "fp16", or "bf16" (option htp_bf16_enable)
  std::set<std::string> pinned;    // affinity=TopK=cpu+Erf=cpu: operators left to the CPU
  std::filesystem::path affinity_file;  // op_affinity=FILE: the provider's own JSON, passed through
  std::filesystem::path library;        // library=FILE or directory; empty: looked for
  // Everything that goes to the provider as it is: backend_type, soc_model, htp_arch, vtcm_mb, ...
  std::map<std::string, std::string> provider;
  // The same in one line, "backend_type=htp htp_arch=73 ...", for records and for the cache.
  std::string record() const;
};

// InvalidArgument: no soc, one that the place does not take, an arch that is not the soc's, a
// backend other than htp, a key or a value that does not exist (each with those that do).
Result<QnnOptions> qnn_options(std::string_view rest, QnnPlace place);

// The values of soc that were seen to work on the emulator of onnxruntime-qnn 2.7.0.
const std::vector<int>& qnn_emulated_socs();

// The provider's JSON of `pinned`: {"op_type": {"TopK": "cpu"}}.
std::string qnn_affinity_json(const std::set<std::string>& pinned);

}  // namespace tenonnx
