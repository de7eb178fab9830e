// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Who makes and who uses a tensor, order, names, and attributes: what every pass asks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tenonnx/base.h"

namespace onnx {
class AttributeProto;
class GraphProto;
class ModelProto;
class NodeProto;
class TensorProto;
class ValueInfoProto;
}  // namespace onnx

namespace tenonnx {

// One use of a tensor. `node` is an index into the main graph's nodes; `input` the position among
// its inputs, or -1 where the If/Loop/Scan body of that node captures the tensor (at any depth).
struct Use {
  int node = -1;
  int input = -1;
};

// A tensor of the main graph.
struct Value {
  std::string_view name;
  int producer = -1;  // index of the node that makes it; -1 for inputs and initializers
  int output = -1;    // its position among that node's outputs
  bool is_input = false;
  bool is_output = false;
  const onnx::TensorProto* initializer = nullptr;
  const onnx::ValueInfoProto* info = nullptr;  // recorded type: of inputs, outputs, value_info
  std::vector<Use> uses;                       // in node order, each position apart
  bool is_initializer() const { return initializer != nullptr || is_sparse_initializer; }
  bool is_sparse_initializer = false;
};

// The edges of a main graph. Holds views into the proto: build it again after a change. Linear in
// nodes and edges.
class GraphIndex {
 public:
  explicit GraphIndex(const onnx::GraphProto& graph);
  const onnx::GraphProto& graph() const { return *graph_; }
  // nullptr where no such tensor is made, fed or stored. A dangling name is not found.
  const Value* find(std::string_view name) const;
  // The node that makes it, or nullptr.
  const onnx::NodeProto* producer(std::string_view name) const;
  const std::vector<Use>& uses(std::string_view name) const;
  // Every tensor: inputs, initializers, then outputs in node order.
  const std::vector<Value>& values() const { return values_; }
  // Tensors of this graph that the bodies of node `index` capture, in order of first use.
  const std::vector<std::string_view>& captures(int index) const;

 private:
  Value& add(std::string_view name);
  const onnx::GraphProto* graph_;
  std::vector<Value> values_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
  std::unordered_map<int, std::vector<std::string_view>> captures_;
};

// Names that the bodies of `node` use and do not define themselves, each once, in order.
std::vector<std::string_view> captured_names(const onnx::NodeProto& node);

// Node indices in topological order, as near to the present order as possible (bodies' captures
// count as inputs). DataLoss with the names on a cycle.
Result<std::vector<int>> topological_order(const onnx::GraphProto& graph);
// Sorts the main graph and all bodies; returns the label of the first node that stood too early,
// "" where all were in order.
Result<std::string> sort_nodes(onnx::GraphProto& graph);

// Calls `fn` on the graph and all bodies of its nodes, outer before inner.
void for_each_graph(const onnx::GraphProto& graph,
                    const std::function<void(const onnx::GraphProto&)>& fn);
void for_each_graph(onnx::GraphProto& graph, const std::function<void(onnx::GraphProto&)>& fn);
// Calls `fn` on every tensor of the model: initializers, attributes, in bodies and functions too.
void for_each_tensor(const onnx::ModelProto& model,
                     const std::function<void(const onnx::TensorProto&)>& fn);
void for_each_tensor(onnx::ModelProto& model, const std::function<void(onnx::TensorProto&)>& fn);

// "Conv 'encoder/conv1'"; of a node without a name "Conv (makes 'x')"; with its domain where that
// is not ai.onnx: "com.acme.Warp 'w'".
std::string node_label(const onnx::NodeProto& node);

// Makes names that occur nowhere in a model (tensors, nodes, in bodies and functions): `base`
// itself, else base_1, base_2, ... The same calls on the same model give the same names.
class UniqueNames {
 public:
  explicit UniqueNames(const onnx::ModelProto& model);
  // Tensor names only: nodes have their own, and may be named like a tensor.
  static UniqueNames of_tensors(const onnx::ModelProto& model);
  std::string make(std::string_view base);
  bool taken(std::string_view name) const;

 private:
  UniqueNames() = default;
  void add(const onnx::ModelProto& model, bool nodes);
  std::unordered_set<std::string> taken_;
};

// Renames a tensor everywhere in a graph: node inputs and outputs, graph inputs and outputs,
// initializers, value_info, quantization annotations, captures in bodies (not where a body defines
// the name itself). The new name must not occur yet.
void rename_tensor(onnx::GraphProto& graph, std::string_view from, const std::string& to);

// Gives names that a body of If/Loop/Scan defines although an outer graph has them too (ONNX
// forbids it, ONNX Runtime takes it) new ones in that body, so that a name means one tensor
// wherever it is read. Returns how many there were.
int rename_shadowing(onnx::ModelProto& model);

// "" for "ai.onnx", else the domain itself.
std::string_view normalized_domain(std::string_view domain);
// Imports `domain` at `version` where it is not imported; FailedPrecondition where it is imported
// at another version.
Status import_opset(onnx::ModelProto& model, std::string_view domain, std::int64_t version);

// Drops doc_string and metadata_props everywhere; true where there were any.
bool strip_metadata(onnx::ModelProto& model);
bool has_metadata(const onnx::ModelProto& model);

// Removes initializers, value_info, quantization annotations, functions and opset imports that
// nothing uses (ai.onnx stays). Returns how many initializers went.
int remove_unused(onnx::ModelProto& model);

// Attributes by name; the fallback where it is absent or of another type.
const onnx::AttributeProto* find_attribute(const onnx::NodeProto& node, std::string_view name);
std::int64_t attribute_or(const onnx::NodeProto& node, std::string_view name,
                          std::int64_t fallback);
float attribute_or(const onnx::NodeProto& node, std::string_view name, float fallback);
std::string attribute_or(const onnx::NodeProto& node, std::string_view name, const char* fallback);
std::vector<std::int64_t> attribute_ints(const onnx::NodeProto& node, std::string_view name);

}  // namespace tenonnx
