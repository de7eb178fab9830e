// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A device is an executor: it loads a graph, runs it on inputs, and says where each node ran. Every
// comparison takes two executors and does not know which they are.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"
#include "tenonnx/base.h"

namespace tenonnx {

enum class Optimization { kDisabled, kBasic, kExtended, kAll };
// "disabled", "basic", "extended", "all": as results and manifests record it.
std::string_view to_string(Optimization level);

// How a graph is to be loaded. What is set here is recorded with every result.
struct LoadOptions {
  int intra_op_threads = 0;  // 0: one per physical core, the runtime's default
  int inter_op_threads = 1;
  bool parallel = false;  // sequential execution of nodes otherwise
  bool spinning =
      false;  // threads that wait by spinning disturb everything else on a small machine
  Optimization optimization = Optimization::kAll;
  bool profile = false;           // needed for placement(): the profile decides where a node ran
  bool disable_fallback = false;  // a node that falls to the CPU is an error
  // An emulator of a device, which takes seconds to minutes a run, may answer what it has computed
  // before, with the same graph, inputs, options and versions, from the user's cache. Never for
  // times or placement.
  bool reuse_results = false;
};

// Where one executed node ran. `node` is the name in the graph as executed (after fusions).
struct NodePlacement {
  std::string node;
  std::string op_type;
  std::string provider;          // "CPUExecutionProvider", ...
  std::int64_t duration_us = 0;  // of the last profiled run
};

// From the profile of the runs so far; the assignment record explains, the profile decides.
struct Placement {
  std::vector<NodePlacement> nodes;                    // as executed
  std::vector<std::pair<std::string, int>> providers;  // nodes per provider, most first
  // What is wrong or missing: empty where profile and assignment record agree. Anything here makes
  // a verdict on placement INCONCLUSIVE.
  std::string disagreement;
};

// A graph that an executor has loaded. Thread-safe: several threads may run one loaded graph.
class LoadedGraph {
 public:
  virtual ~LoadedGraph() = default;
  virtual const std::vector<TensorInfo>& inputs() const = 0;
  virtual const std::vector<TensorInfo>& outputs() const = 0;
  // inputs in the order of inputs(). On success `outputs` holds one tensor per outputs(): a defined
  // tensor of the right dtype and shape is written into (bound, no copy), any other is replaced by
  // one that the runtime allocated. InvalidArgument names the input whose dtype or shape is wrong
  // (got against allowed).
  virtual Status run(std::span<const Tensor> inputs, std::vector<Tensor>& outputs) = 0;
  // Ends profiling. FailedPrecondition unless loaded with LoadOptions::profile.
  virtual Result<Placement> placement() = 0;
  // "onnxruntime 1.29.0, CPUExecutionProvider, 2 intra-op threads, ...": recorded with results.
  virtual std::string description() const = 0;

  // Says which of several inputs the next run() is about: the name of the image or of the random
  // input, and its position from 0. Only recordings that do not hold their inputs need it; whatever
  // computes takes no notice. Not to be mixed with run() from several threads. NotFound lists the
  // recorded cases.
  virtual Status select_case(std::string_view /*name*/, std::size_t /*index*/) { return {}; }

  // By name: every input must be given, no other may be.
  Result<TensorMap> run(const TensorMap& inputs);
};

class Executor {
 public:
  virtual ~Executor() = default;
  // What --ref, --on and a manifest hold: "cpu", "sim:htp-v73".
  virtual const std::string& address() const = 0;
  virtual Result<std::unique_ptr<LoadedGraph>> load(const Model& model,
                                                    const LoadOptions& options) const = 0;
  // Which tensors this executor can give as outputs of `model` (the whole one, not a part of it):
  // nullopt where any tensor, because it computes; for recordings the recorded names, each a tensor
  // of the model. InvalidArgument where a recording names tensors that the model does not have.
  virtual Result<std::optional<std::vector<std::string>>> recorded_tensors(
      const Model& /*model*/) const {
    return std::optional<std::vector<std::string>>();
  }
  // name -> version of everything below: "onnxruntime" -> "1.29.0", "device file" -> "htp-v73 ...".
  virtual std::vector<std::pair<std::string, std::string>> versions() const = 0;
};

// The reference: ONNX Runtime's CPU provider. Address "cpu".
std::unique_ptr<Executor> make_cpu_executor();

}  // namespace tenonnx
