// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Every node (or, of two graphs, every piece between tensors that both have) on its own, fed with
// the reference's tensors: f~(x) beside f(x), where an ordinary run gives f~(x~). An error that
// shows here is the piece's own; one that does not was inherited.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "flow/tensor_inputs.h"
#include "ort/executor.h"

namespace tenonnx {

// Tensors of the reference, by input; those of the last call are kept, as several sides of a
// comparison ask for the same ones. Not thread-safe.
class ReferenceTensors {
 public:
  // `inputs` and the others outlive it. Runs with optimisation disabled.
  ReferenceTensors(const Executor& executor, const Model& model, const TensorInputs& inputs,
                   LoadOptions options);
  // The named tensors of input `position`; graph inputs are among what can be asked for.
  Result<TensorMap> get(const std::set<std::string>& names, std::size_t position);
  // Of the input of that name; the first one where none has it.
  Result<std::size_t> position_of(const std::string& input);

 private:
  struct Entry {
    std::set<std::string> names;
    std::unique_ptr<LoadedGraph> graph;
    std::size_t position = 0;  // of the tensors
    TensorMap tensors;
  };
  Entry& entry_for(const std::set<std::string>& names);

  const Executor& executor_;
  const Model& model_;
  const TensorInputs& inputs_;
  LoadOptions options_;
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t> positions_;  // read once: a name costs a whole image
};

// What is fed for which tensor of a graph: tensor of the graph -> the reference's name.
using FedTensors = std::map<std::string, std::string, std::less<>>;

// The nodes that `model`'s outputs need up to the tensors of `fed`, each of which is read as a
// graph input named "reference/" + its name, also where a node of the result makes it, and by
// bodies of If, Loop and Scan. Outputs and graph inputs are those of `model`. FailedPrecondition
// where the type of a tensor is not known.
Result<Model> decouple(const Model& model, const FedTensors& fed);

// Loads what it is given decoupled; LoadedGraph::run is about the input that select_case() named.
class DecoupledExecutor : public Executor {
 public:
  // All outlive it.
  DecoupledExecutor(const Executor& inner, FedTensors fed, ReferenceTensors& reference)
      : inner_(inner), fed_(std::move(fed)), reference_(reference) {}

  const std::string& address() const override { return inner_.address(); }
  Result<std::unique_ptr<LoadedGraph>> load(const Model& model,
                                            const LoadOptions& options) const override;
  std::vector<std::pair<std::string, std::string>> versions() const override {
    return inner_.versions();
  }

 private:
  const Executor& inner_;
  const FedTensors fed_;
  ReferenceTensors& reference_;
};

}  // namespace tenonnx
