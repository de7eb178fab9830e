// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A compiled partition as bytes, and the EPContext node that carries it: embedded in the model, or
// in a file beside it.
#pragma once

#include <onnxruntime_cxx_api.h>

#include <filesystem>
#include <string>
#include <vector>

#include "options.h"
#include "partition.h"

namespace tenonnx::simnpu {

// A node of the original graph, as the provider's own record lists it.
struct ReportedNode {
  std::string name, op_type;
};

// What the device would load: the partition's graph in the device's arithmetic, and what belongs
// to it.
struct Compiled {
  std::string partition;  // the name of the node that stands for it
  int number = 0;         // from 1, in the order in which the session compiles
  std::string compatibility;
  Backend backend = Backend::kDevice;
  std::vector<std::string> inputs, outputs;  // of the graph, in the order of that node
  // Where each of these is at the node that stands for it in the session that loads: a session
  // reorders the inputs of an EPContext node, and renames them where it removes what stands before.
  std::vector<std::size_t> input_at, output_at;
  std::vector<ReportedNode> nodes;
  std::string model;  // ONNX
};

// The format's version, the device, and the hash of its file: what must be equal for a context to
// be loaded.
std::string compatibility_of(const Device& device);

// "TENONNX-SIMNPU-CONTEXT 1\n", the length of a JSON header in decimal and '\n', the header, the
// model. DataLoss for anything else.
std::string write_context(const Compiled& compiled);
Result<Compiled> read_context(std::string_view bytes, std::string_view where);

bool is_own_context(const Ort::ConstNode& node);
// The node that ONNX Runtime writes into the compiled model; for a context beside the model, writes
// that file too, MODEL-STEM_NUMBER.bin. An empty `bytes` is left out
// (Settings::options.drop_binary).
Result<Ort::Node> make_context_node(const Compiled& compiled, std::string_view bytes,
                                    const std::filesystem::path& model, const Settings& settings);
// The context that such a node carries or names. Its compatibility is checked: FailedPrecondition
// with both strings. NotFound where its file does not exist, DataLoss where it holds nothing.
Result<Compiled> load_context(const Ort::ConstNode& node, const std::filesystem::path& model,
                              const Settings& settings);

}  // namespace tenonnx::simnpu
