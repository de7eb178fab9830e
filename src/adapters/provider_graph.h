// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A graph that a provider of ONNX Runtime has loaded, and what is known of where its nodes go
// before the first run.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ort/executor.h"
#include "ort/placement.h"

namespace tenonnx {

// What the provider says of itself: a claim, where the profile is proof. Of each node it took, the
// partition and who is to compute it ("device", or "host": the vendor's own code on the CPU).
struct VendorNode {
  std::string node, op_type, partition, backend;
};

struct ProviderRecord {
  std::string provider;                // as profiles name it
  std::set<std::string> pinned;        // operator types that were left to the CPU on request
  std::vector<AssignedNode> assigned;  // ONNX Runtime's assignment record
  std::vector<VendorNode> vendor;      // empty where the provider wrote no record
  // ONNX Runtime has moved the graph into the provider's layout, and merged transposes on the way:
  // such nodes of the model are then in no record.
  bool relayouts = false;
};

// nullptr for a graph of an executor that is no provider.
const ProviderRecord* provider_record(const LoadedGraph& graph);

// Passes everything on to the session.
class ProviderGraph : public LoadedGraph {
 public:
  ProviderGraph(std::unique_ptr<LoadedGraph> session, ProviderRecord record)
      : session_(std::move(session)), record_(std::move(record)) {}
  const std::vector<TensorInfo>& inputs() const override { return session_->inputs(); }
  const std::vector<TensorInfo>& outputs() const override { return session_->outputs(); }
  using LoadedGraph::run;
  Status run(std::span<const Tensor> inputs, std::vector<Tensor>& outputs) override {
    return session_->run(inputs, outputs);
  }
  Result<Placement> placement() override { return session_->placement(); }
  std::string description() const override { return session_->description(); }
  const ProviderRecord& record() const { return record_; }

 private:
  const std::unique_ptr<LoadedGraph> session_;
  const ProviderRecord record_;
};

}  // namespace tenonnx
