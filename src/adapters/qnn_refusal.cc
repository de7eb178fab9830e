// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/qnn_refusal.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "adapters/provider_refusal.h"
#include "adapters/qnn_options.h"
#include "base/wording.h"

namespace tenonnx {
namespace {

constexpr std::size_t kListed = 4;
constexpr std::string_view kToken = "_token_";
// "Unsupported nodes in QNN EP: { name: a/Erf, type: Erf }{ name: ..."
constexpr std::string_view kUnsupported = "Unsupported nodes in QNN EP",
                           kName = "{ name: ", kType = ", type: ";
// Of nodes without a message of their own.
constexpr std::string_view kNoKernel = "error code 3110";

struct Known {
  std::string_view text;    // in the vendor's message
  std::string_view advice;  // what it means, and what to do
};
// Measured with onnxruntime-qnn 2.7.0 (QNN 2.51) on the emulator.
constexpr Known kKnown[] = {
    {"QNN_DEVICE_ERROR_INVALID_CONFIG",
     "the library does not know this soc: everything would run on the CPU. Take the number of the "
     "chip, "
     "as soc=43"},
    {"QNN_COMMON_ERROR_MEM_ALLOC",
     "no graph in fp16 compiles for this soc: it has no fp16 (HTP v68), or none was given. Take "
     "soc=43 or "
     "another of HTP v69 and later"},
    {"QNN_CONTEXT_ERROR",
     "the context was compiled by another version of the vendor's package, or for another soc: "
     "deploy "
     "the model again with the version that is here"},
    {"Unable to load backend",
     "the backend library is not beside the provider's: install both from the same package (./dev "
     "vendor "
     "qnn; on a board libQnnHtp.so and its Stub and Skel, with ADSP_LIBRARY_PATH naming the Skel's "
     "directory)"},
    {"Having zero graph inputs is not supported",
     "a part of the graph computes shapes from constants and has no input: fold it (deploy without "
     "--no-fold-constants, or rewrite --pass fold_constants)"},
    {"Unsupported FP64 data type",
     "float64 values cross the border of a partition: fold the shape arithmetic that makes them "
     "(rewrite "
     "--pass fold_constants)"},
    {"op_affinity config",
     "the file of op_affinity is not what the provider reads: {\"op_type\": {\"TopK\": \"cpu\"}}"},
    {"as requested by QNNExecutionProvider",
     "the provider asked for another layout and then did not take the nodes: this soc computes no "
     "fp16 "
     "convolution. Take another soc"},
    {"error code 3110",
     "HTP has no such kernel: tensors of rank 6 (rewrite --pass collapse_rank), Erf outside GELU "
     "(rewrite "
     "--pass fuse_gelu), Det, GridSample bicubic (rewrite --pass replace_grid_sample_gather); or "
     "cut the "
     "graph before it"},
};

bool contains(const std::vector<std::string>& messages, std::string_view text) {
  return std::any_of(messages.begin(), messages.end(), [&](const std::string& message) {
    return message.find(text) != std::string::npos;
  });
}

// What stands between the first two ` behind `from`.
std::string quoted_behind(const std::string& text, std::string_view from) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) return "";
  const std::size_t begin = text.find('`', at);
  if (begin == std::string::npos) return "";
  return text.substr(begin + 1, text.find('`', begin + 1) - begin - 1);
}

std::string left_on_cpu(const std::vector<AssignedNode>& assigned) {
  std::map<std::string, std::pair<std::size_t, std::string>> types;  // -> count, first
  std::size_t count = 0;
  for (const AssignedNode& node : assigned) {
    if (node.provider == kQnnProvider) continue;
    auto& [number, first] = types[node.op_type];
    if (number++ == 0) first = node.name;
    ++count;
  }
  if (count == 0) return "";
  std::string out =
      count == assigned.size()
          ? listed_but_unused(std::string(kQnnProvider), count, "would run") + ":"
          : fmt::format("{} of {} would run on the CPU:", count, counted(assigned.size(), "node"));
  std::size_t listed = 0;
  for (const auto& [type, one] : types) {
    if (listed++ == kListed) {
      out += fmt::format(" and {}", counted(types.size() - kListed, "more type", "more types"));
      break;
    }
    out += fmt::format("{} {} {}, first '{}'", listed > 1 ? "," : "", one.first, type, one.second);
  }
  return out;
}

std::string refused_text(const std::vector<RefusedNode>& refused) {
  if (refused.empty()) return "";
  std::string out = fmt::format("the provider refuses {}:", counted(refused.size(), "node"));
  for (std::size_t i = 0; i < std::min(refused.size(), kListed); ++i)
    out += fmt::format("{} {} '{}'", i > 0 ? "," : "", refused[i].type, refused[i].node);
  if (refused.size() > kListed) out += fmt::format(" and {} more", refused.size() - kListed);
  return out;
}

}  // namespace

std::vector<RefusedNode> refused_nodes(const std::vector<std::string>& messages) {
  std::vector<RefusedNode> out;
  std::set<std::string> seen;
  for (const std::string& message : messages) {
    // Those that the provider has no way to express, and those that the backend refused: in one
    // list.
    if (message.find(kUnsupported) != std::string::npos) {
      for (std::size_t at = message.find(kName); at != std::string::npos;
           at = message.find(kName, at + 1)) {
        const std::size_t begin = at + kName.size(), comma = message.find(kType, begin);
        const std::size_t end = message.find(" }", begin);
        if (comma == std::string::npos || end == std::string::npos || comma > end) break;
        const std::string node = model_name(message.substr(begin, comma - begin));
        const std::size_t type = comma + kType.size();
        if (seen.insert(node).second) out.push_back({node, message.substr(type, end - type)});
      }
      continue;
    }
    const std::string node = quoted_behind(message, "backendValidateOpConfig() failed for node");
    if (node.empty() || !seen.insert(node).second) continue;
    out.push_back({node, quoted_behind(message, "of type")});
  }
  return out;
}

std::string model_name(const std::string& name) {
  const std::size_t at = name.rfind(kToken);
  if (at == std::string::npos || at + kToken.size() == name.size()) return name;
  const bool number = name.find_first_not_of("0123456789", at + kToken.size()) == std::string::npos;
  return number ? name.substr(0, at) : name;
}

std::string known_cause(const std::vector<std::string>& messages) {
  for (const Known& known : kKnown)
    if (contains(messages, known.text)) return fmt::format("{}: {}", known.text, known.advice);
  return "";
}

std::string explain_qnn_refusal(std::string_view error, const std::vector<std::string>& messages,
                                const std::vector<AssignedNode>& assigned) {
  std::vector<std::string> all = messages;
  all.emplace_back(error);
  std::vector<std::string> lines;
  const auto add = [&](std::string line) {
    if (!line.empty()) lines.push_back(std::move(line));
  };
  add(left_on_cpu(assigned));
  // Where the device does not start every node is refused, which says nothing.
  const std::string cause = known_cause(all);
  const bool nodes_alone = cause.starts_with(kNoKernel) || cause.empty();
  const std::vector<RefusedNode> refused = refused_nodes(messages);
  if (nodes_alone) add(refused_text(refused));
  // Of some operators the provider says nothing at all (Det, GridSample bicubic).
  const bool known = !refused.empty() || !assigned.empty();
  add(cause.empty() && known ? known_cause({std::string(kNoKernel)}) : cause);
  if (cause.empty() && !known) add(std::string(error));
  return fmt::format("{}", fmt::join(lines, "\n    "));
}

}  // namespace tenonnx
