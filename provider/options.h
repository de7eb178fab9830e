// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Options of the provider, and the faults of real vendors that some of them imitate.
// docs/how_to/provider.md describes them for users.
#pragma once

#include <onnxruntime_cxx_api.h>

#include <set>
#include <string>

#include "adapters/simnpu_options.h"
#include "device/device.h"

namespace tenonnx::simnpu {

// What a session gave, read from its configuration.
struct Settings {
  SimNpuOptions options;
  Device device;                // with arithmetic and supported operators
  bool make_contexts = false;   // ep.context_enable
  bool embed_contexts = false;  // ep.context_embed_mode
  std::string context_file;     // ep.context_file_path
  std::string context_prefix;   // ep.context_node_name_prefix
  // Why the provider claims nothing: the wrong soc, no backend library. "" where all is well. Told
  // to the log alone, as vendors do.
  std::string silent;
};

// InvalidArgument for an option that cannot be read, NotFound for a device that does not exist.
Result<Settings> read_settings(Ort::ConstSessionOptions session);

}  // namespace tenonnx::simnpu
