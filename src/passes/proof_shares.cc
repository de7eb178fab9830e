// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/proof_shares.h"

#include <onnx/onnx_pb.h>

#include <algorithm>

#include "base/status.h"
#include "base/wording.h"
#include "model/extract.h"
#include "model/graph.h"
#include "ort/capture.h"
#include "passes/edit.h"

namespace tenonnx {
namespace {

struct Kept {
  std::string tensor;  // which are kept
  std::string all;     // what TopK chose from
};

std::vector<Kept> find_kept(const Model& before, const Model& after) {
  const GraphIndex old(before.proto().graph()), index(after.proto().graph());
  std::vector<Kept> out;
  for (const onnx::NodeProto& node : after.proto().graph().node()) {
    if (!is_op(node, "GreaterOrEqual") && !is_op(node, "Equal")) continue;
    const std::string& name = node.output(0);
    const std::size_t slash = name.rfind('/');
    if (slash == std::string::npos || !name.substr(slash + 1).starts_with(kKeptName)) continue;
    const onnx::NodeProto* top = index.producer(node.input(0));
    if (top == nullptr || !is_op(*top, "TopK") || old.find(name) != nullptr) continue;
    out.push_back({name, top->input(0)});
  }
  return out;
}

}  // namespace

Result<std::vector<std::string>> kept_shares(const Executor& executor, int threads,
                                             const Model& before, const Model& after,
                                             const ProofData& data) {
  const std::vector<Kept> kept = find_kept(before, after);
  std::vector<std::string> inputs, tensors, lines;
  if (kept.empty() || data.count == 0) return lines;
  ExtractOptions extraction;
  for (const Kept& one : kept) {
    tensors.push_back(one.tensor);
    tensors.push_back(one.all);
    extraction.types.push_back({one.tensor, DType::kBool, {}, false});
    extraction.types.push_back({one.all, DType::kFloat32, {}, false});
  }
  for (const TensorInfo& input : after.inputs()) inputs.push_back(input.name);
  TENONNX_ASSIGN_OR_RETURN(const Model part, extract(after, inputs, tensors, extraction));
  LoadOptions load;
  load.intra_op_threads = threads;
  load.optimization = Optimization::kDisabled;
  TENONNX_ASSIGN_OR_RETURN(const auto graph, executor.load(part, load));
  std::vector<std::vector<double>> shares(kept.size());
  std::vector<std::int64_t> all(kept.size(), 0);
  for (std::size_t k = 0; k < data.count; ++k) {
    TENONNX_ASSIGN_OR_RETURN(const TensorMap real, data.load(k));
    TENONNX_ASSIGN_OR_RETURN(const TensorMap ran, graph->run(inputs_of(*graph, real)));
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const Tensor& which = ran.at(kept[i].tensor);
      all[i] = ran.at(kept[i].all).size();
      if (which.dtype() != DType::kBool || all[i] == 0) continue;
      const auto* p = which.data<std::uint8_t>();
      const auto count = std::count_if(p, p + which.size(), [](auto v) { return v != 0; });
      shares[i].push_back(static_cast<double>(count) / static_cast<double>(all[i]));
    }
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (shares[i].empty()) continue;
    double sum = 0;
    for (const double share : shares[i]) sum += share;
    const auto [least, most] = std::minmax_element(shares[i].begin(), shares[i].end());
    lines.push_back(fmt::format(
        "'{}': {:.3g} % of {} queries are kept in the mean of {}, {:.3g} % at least, {:.3g} % at "
        "most",
        kept[i].tensor, 100 * sum / static_cast<double>(shares[i].size()), all[i],
        counted(shares[i].size(), "input"), 100 * *least, 100 * *most));
  }
  return lines;
}

}  // namespace tenonnx
