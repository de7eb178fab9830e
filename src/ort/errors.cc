// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/errors.h"

#include <onnx/defs/schema.h>
#include <onnxruntime_cxx_api.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/status.h"
#include "model/grid_sample_modes.h"
#include "ort/library.h"
#include "ort/model_lookup.h"

namespace tenonnx {
namespace {

// The text between `before` and `after`; nothing where either is missing. Not std::regex: its
// recursion overflows the stack on messages that carry a long list.
std::optional<std::string_view> between(std::string_view text, std::string_view before,
                                        std::string_view after) {
  const auto begin = text.find(before);
  if (begin == std::string_view::npos) return std::nullopt;
  text.remove_prefix(begin + before.size());
  const auto end = text.find(after);
  if (end == std::string_view::npos) return std::nullopt;
  return text.substr(0, end);
}

std::string_view leading_number(std::string_view text) {
  return text.substr(0, text.find_first_not_of("0123456789"));
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// "onnx" for the default domain, which ONNX Runtime calls "" or "ai.onnx".
std::string domain_name(std::string_view domain) {
  return domain.empty() || domain == "ai.onnx" ? "ai.onnx" : std::string(domain);
}

std::string runtime_name() {
  const auto runtime = onnxruntime();
  return runtime.ok() ? "ONNX Runtime " + (*runtime)->version : "ONNX Runtime";
}

std::string node_name(std::string_view name) {
  return name.empty() ? "without a name" : fmt::format("'{}'", name);
}

struct Explained {
  StatusCode code;
  std::string text;
};
using Explanation = std::optional<Explained>;

// "Opset 27 is under development ... Current official support for domain ai.onnx is till opset 26."
Explanation newer_opset(std::string_view text, const Model*) {
  const auto opset = between(text, "Opset ", " is under development");
  const auto domain = between(text, "support for domain ", " is till opset ");
  const auto highest = between(text, " is till opset ", ".");
  if (!opset || !domain || !highest) return std::nullopt;
  return Explained{StatusCode::kUnsupported,
                   fmt::format("the model has opset {}{}; {} takes up to {}. Export it with opset "
                               "{} or lower, or convert it with onnx.version_converter.",
                               *opset, *domain == "ai.onnx" ? "" : fmt::format(" of '{}'", *domain),
                               runtime_name(), *highest, *highest)};
}

// "Unsupported model IR version: 14, max supported IR version: 13"
Explanation newer_ir(std::string_view text, const Model*) {
  const auto version = between(text, "Unsupported model IR version: ", ",");
  const auto at = text.find("max supported IR version: ");
  if (!version || at == std::string_view::npos) return std::nullopt;
  const auto highest = leading_number(text.substr(at + 26));
  return Explained{StatusCode::kUnsupported,
                   fmt::format("the model has IR version {}; {} takes up to {}. Save it with an "
                               "older onnx, or set ir_version where nothing newer is used.",
                               *version, runtime_name(), highest)};
}

// In which opset an operator of the default domain first appeared, or 0.
int first_opset(const std::string& op_type) {
  const auto* schema = ONNX_NAMESPACE::OpSchemaRegistry::Schema(op_type);
  while (schema && schema->SinceVersion() > 1) {
    const auto* older =
        ONNX_NAMESPACE::OpSchemaRegistry::Schema(op_type, schema->SinceVersion() - 1, "");
    if (!older) break;
    schema = older;
  }
  return schema ? schema->SinceVersion() : 0;
}

// 'In Node, ("node_0", Foo, "", -1) : ..., Error No Op registered for Foo with domain_version of
// 17'
Explanation unknown_operator(std::string_view text, const Model*) {
  const auto op = between(text, "No Op registered for ", " with domain_version of ");
  if (!op) return std::nullopt;
  const auto opset = leading_number(text.substr(text.find(" with domain_version of ") + 24));
  const auto node = between(text, "In Node, (\"", "\"");
  std::string why = fmt::format("operator '{}' (node {}) does not exist in opset {}", *op,
                                node_name(node.value_or("")), opset);
  const int since = first_opset(std::string(*op));
  if (since > std::atoi(std::string(opset).c_str())) {
    why += fmt::format("; it exists from opset {} on. Export the model with opset {} or higher.",
                       since, since);
  } else {
    why += fmt::format(
        ". If it is an operator of a toolchain, give the node its domain, or replace "
        "it by ONNX operators before this step.");
  }
  return Explained{StatusCode::kUnsupported, why};
}

// "Fatal error: my.dom:Foo(-1) is not a registered function/op"
Explanation unregistered_domain(std::string_view text, const Model* model) {
  const auto full = between(text, "Fatal error: ", " is not a registered function/op");
  if (!full) return std::nullopt;
  const auto colon = full->rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto domain = full->substr(0, colon);
  const auto op = between(full->substr(colon), ":", "(").value_or(full->substr(colon + 1));
  const std::string nodes = model ? nodes_of_type(*model, op, domain) : std::string();
  return Explained{
      StatusCode::kUnsupported,
      fmt::format(
          "operator '{}' of domain '{}'{} is not known to this session. Run the graph on an "
          "executor that brings this operator, cut before it, or rewrite it to ONNX "
          "operators.",
          op, domain_name(domain), nodes.empty() ? "" : fmt::format(" (node {})", nodes))};
}

// 'In Node, ("n", Foo, "my.dom", -1) : ... Error No opset import for domain 'my.dom''
Explanation missing_import(std::string_view text, const Model*) {
  const auto domain = between(text, "No opset import for domain '", "'");
  if (!domain) return std::nullopt;
  const auto node = between(text, "In Node, (\"", "\"");
  return Explained{StatusCode::kInvalidArgument,
                   fmt::format("node {} uses domain '{}', which the model's opset_import does not "
                               "list. Add the domain with its version to opset_import.",
                               node_name(node.value_or("")), domain_name(*domain))};
}

// "Could not find an implementation for GridSample(16) node with name 'node_0'"
Explanation missing_kernel(std::string_view text, const Model* model) {
  const auto op = between(text, "Could not find an implementation for ", "(");
  const auto version = between(text, "Could not find an implementation for ", ")");
  const auto node = between(text, "node with name '", "'");
  if (!op || !version) return std::nullopt;
  const std::string since = std::string(version->substr(op->size() + 1));
  const std::string inputs = model && node ? inputs_of_node(*model, *node, *op) : std::string();
  return Explained{
      StatusCode::kUnsupported,
      fmt::format("{} {} (version {}) has no kernel in {} for its dtypes{}. Cast its inputs to "
                  "float32 and its outputs back, or run this node on another executor.",
                  *op, node_name(node.value_or("")), since, runtime_name(),
                  inputs.empty() ? "" : fmt::format(": {}", inputs))};
}

// "Type Error: Type 'tensor(bfloat16)' of input parameter (x) of operator (Conv) in node (n) is
// invalid." and "Type Error: Type parameter (T) of Optype (Add) bound to different types
// (tensor(float) and tensor(double) in node (n)."
Explanation type_error(std::string_view text, const Model*) {
  if (!contains(text, "Type Error: ")) return std::nullopt;
  const auto node = between(text, "in node (", ")");
  if (const auto type = between(text, "Type 'tensor(", ")'")) {
    const auto op = between(text, "of operator (", ")");
    const auto parameter = between(text, "parameter (", ")");
    if (op && parameter && node) {
      return Explained{StatusCode::kInvalidArgument,
                       fmt::format("{} {} does not take {} (tensor '{}') in ONNX at this opset. "
                                   "Insert a Cast before it, or export it with another dtype.",
                                   *op, node_name(*node), *type, *parameter)};
    }
  }
  const auto op = between(text, "of Optype (", ")");
  const auto first = between(text, "different types (tensor(", ")");
  const auto second = between(text, " and tensor(", ")");
  if (!op || !first || !second || !node) return std::nullopt;
  return Explained{StatusCode::kInvalidArgument,
                   fmt::format("{} {} mixes {} and {} where one dtype is needed. Insert a Cast.",
                               *op, node_name(*node), *first, *second)};
}

// "Node (node_0) Op (MatMul) [ShapeInferenceError] Incompatible dimensions ..."
Explanation shape_error(std::string_view text, const Model* model) {
  if (!contains(text, "ShapeInferenceError")) return std::nullopt;
  const auto node = between(text, "Node (", ") Op (");
  const auto op = between(text, ") Op (", ")");
  if (!node || !op) return std::nullopt;
  const std::string inputs = model ? inputs_of_node(*model, *node, *op) : std::string();
  return Explained{
      StatusCode::kInvalidArgument,
      fmt::format("the shapes at {} {} do not fit together{}. Check the shapes declared "
                  "for the inputs that feed it.",
                  *op, node_name(*node), inputs.empty() ? "" : fmt::format(": {}", inputs))};
}

Explanation invalid_graph(std::string_view text, const Model*) {
  if (const auto name = between(text, "Node input '", "' is not a graph input")) {
    return Explained{StatusCode::kInvalidArgument,
                     fmt::format("tensor '{}' is read by a node, but nothing makes it: no input, "
                                 "initializer or earlier node of that name",
                                 *name)};
  }
  if (contains(text, "the graph is not acyclic")) {
    return Explained{StatusCode::kInvalidArgument,
                     "the graph has a cycle: some node reads a tensor that depends on its own "
                     "output"};
  }
  if (const auto name = between(text, "Duplicate definition of name (", ")")) {
    return Explained{
        StatusCode::kInvalidArgument,
        fmt::format("the name '{}' is defined twice; names of tensors must be unique", *name)};
  }
  const auto node = between(text, "In Node, (\"", "\"");
  const auto at = text.find("Error ", text.find("In Node, (\""));
  if (node && at != std::string_view::npos) {
    return Explained{
        StatusCode::kInvalidArgument,
        fmt::format("node {} is not valid: {}", node_name(*node), text.substr(at + 6))};
  }
  return std::nullopt;
}

// "... GridSample<T>::GridSample(...) mode "linear" not supported, expect bilinear, nearest or
// bicubic"
Explanation misspelled(std::string_view text, const Model* model) {
  if (model == nullptr || !contains(text, "GridSample") ||
      !contains(text, "not supported, expect "))
    return std::nullopt;
  const auto found = misspelled_mode(*model);
  if (!found) return std::nullopt;
  return Explained{
      StatusCode::kInvalidArgument,
      found->what + (found->is_a_mode
                         ? ". Run `tenonnx rewrite MODEL --pass normalize_grid_sample` first, "
                           "which spells it as the opset does."
                         : ". Linear, nearest and cubic are possible: export it again.")};
}

Explanation not_a_model(std::string_view text, const Model*) {
  if (!contains(text, "protobuf parsing failed") && !contains(text, "No graph was found"))
    return std::nullopt;
  return Explained{StatusCode::kDataLoss,
                   "these bytes are not an ONNX model: damaged, truncated, or a Git LFS pointer"};
}

Explanation external_data(std::string_view text, const Model*) {
  if (const auto name = between(text, "External initializer: ", " offset: ")) {
    return Explained{StatusCode::kDataLoss,
                     fmt::format("the external data of initializer '{}' do not lie inside their "
                                 "file, which is shorter than the model says: copied in part?",
                                 *name)};
  }
  if (const auto name = between(text, "validation failed for initializer: ", ".")) {
    return Explained{StatusCode::kDataLoss,
                     fmt::format("the file of the external data of initializer '{}' cannot be "
                                 "found; it belongs beside the model",
                                 *name)};
  }
  return std::nullopt;
}

Explanation fallback_disabled(std::string_view text, const Model*) {
  if (!contains(text, "fallback to CPU EP has been explicitly disabled")) return std::nullopt;
  return Explained{StatusCode::kUnsupported,
                   "some nodes would run on the CPU, and falling back to it was forbidden. Load "
                   "without that and read the placement to see which, or cut the graph before "
                   "them."};
}

// "Non-zero status code returned while running MatMul node. Name:'node_0' Status Message: ..."
Explanation failed_node(std::string_view text, const Model*) {
  const auto op = between(text, "returned while running ", " node.");
  const auto node = between(text, "Name:'", "'");
  const auto at = text.find("Status Message: ");
  if (!op || !node || at == std::string_view::npos) return std::nullopt;
  const std::string_view detail = text.substr(at + 16);
  constexpr std::array kShapeWords = {"imension", "broadcast", "reshaped", "shape"};
  bool shapes = false;
  for (const char* word : kShapeWords) shapes |= contains(detail, word);
  if (shapes) {
    return Explained{
        StatusCode::kInvalidArgument,
        fmt::format("the shapes at {} {} do not fit together for these inputs. A size "
                    "that the export baked in is the usual cause: run with the sizes of "
                    "the export, or export with dynamic ones.",
                    *op, node_name(*node))};
  }
  const bool bounds = contains(detail, "out of data bounds") || contains(detail, "out of bounds");
  return Explained{bounds ? StatusCode::kInvalidArgument : StatusCode::kInternal,
                   fmt::format("{} {} failed{}", *op, node_name(*node),
                               bounds ? ": an index lies outside of the data" : "")};
}

// "Unexpected input data type. Actual: (tensor(double)) , expected: (tensor(float))" and "Got
// invalid dimensions for input: x"; check_inputs finds these first, except where a session is run
// in another way.
Explanation wrong_input(std::string_view text, const Model*) {
  const auto actual = between(text, "Actual: (tensor(", ")");
  const auto expected = between(text, "expected: (tensor(", ")");
  if (actual && expected) {
    return Explained{StatusCode::kInvalidArgument,
                     fmt::format("an input is {}, the model takes {}", *actual, *expected)};
  }
  if (contains(text, "Got invalid dimensions for input") ||
      contains(text, "Invalid rank for input"))
    return Explained{StatusCode::kInvalidArgument, "an input has a shape that the model refuses"};
  return std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

Status explain_ort_error(OrtStage stage, int code, std::string_view text, const Model* model,
                         std::string_view inputs) {
  text = trimmed(text);
  constexpr std::array kExplanations = {
      newer_opset,       newer_ir,    unknown_operator, unregistered_domain, missing_import,
      missing_kernel,    type_error,  shape_error,      not_a_model,         external_data,
      fallback_disabled, failed_node, wrong_input,      misspelled,          invalid_graph};
  Explanation found;
  for (const auto explain : kExplanations) {
    found = explain(text, model);
    if (found) break;
  }
  if (!found) {
    found = Explained{
        code == ORT_INVALID_ARGUMENT ? StatusCode::kInvalidArgument : StatusCode::kInternal,
        stage == OrtStage::kLoad ? fmt::format("{} refuses the model", runtime_name())
                                 : fmt::format("{} failed to run", runtime_name())};
  }
  std::string message = std::move(found->text);
  if (stage == OrtStage::kRun && !inputs.empty()) {
    if (!message.ends_with('.')) message += '.';
    message += fmt::format(" Given: {}.", inputs);
  }
  return Status(found->code, fmt::format("{} (ONNX Runtime: {})", message, text));
}

}  // namespace tenonnx
