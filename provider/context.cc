// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "context.h"

#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>

#include "api.h"
#include "base/files.h"
#include "base/json.h"
#include "base/status.h"

namespace tenonnx::simnpu {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kMagic = "TENONNX-SIMNPU-CONTEXT 1\n";
constexpr const char* kContextOperator = "EPContext";
constexpr const char* kContextDomain = "com.microsoft";

Result<std::string> text_attribute(const Ort::ConstNode& node, const char* name) {
  Ort::ConstOpAttr attribute{nullptr};
  std::string text;
  const auto found = node.GetAttributeByName(name, attribute);
  if (!found.IsOK() || static_cast<const OrtOpAttr*>(attribute) == nullptr ||
      !attribute.GetValue(text).IsOK())
    return DataLoss("EPContext node '{}' has no attribute '{}'", node.GetName(), name);
  return text;
}

std::int64_t embed_mode(const Ort::ConstNode& node) {
  Ort::ConstOpAttr attribute{nullptr};
  std::int64_t mode = 1;  // the operator's default
  const auto found = node.GetAttributeByName("embed_mode", attribute);
  if (found.IsOK() && static_cast<const OrtOpAttr*>(attribute) != nullptr &&
      !attribute.GetValue(mode).IsOK())
    return -1;
  return mode;
}

Result<std::vector<std::string>> names_of(const JsonReader& reader, std::string_view key) {
  TENONNX_ASSIGN_OR_RETURN(const JsonReader field, reader.at(key));
  TENONNX_ASSIGN_OR_RETURN(const auto items, field.items());
  std::vector<std::string> names;
  for (const JsonReader& item : items) {
    TENONNX_ASSIGN_OR_RETURN(names.emplace_back(), item.string());
  }
  return names;
}

}  // namespace

std::string compatibility_of(const Device& device) {
  return fmt::format("simnpu;format=1;device={};sha256={}", device.name, device.sha256);
}

std::string write_context(const Compiled& compiled) {
  Json nodes = Json::array();
  for (const ReportedNode& node : compiled.nodes) nodes.push_back({node.name, node.op_type});
  const Json header = {{"partition", compiled.partition},
                       {"compatibility", compiled.compatibility},
                       {"backend", compiled.backend == Backend::kHost ? "host" : "device"},
                       {"inputs", compiled.inputs},
                       {"outputs", compiled.outputs},
                       {"nodes", std::move(nodes)}};
  const std::string text = header.dump();
  return fmt::format("{}{}\n{}{}", kMagic, text.size(), text, compiled.model);
}

Result<Compiled> read_context(std::string_view bytes, std::string_view where) {
  const auto damaged = [&](std::string_view what) {
    return DataLoss("{}: {}; compile the model again", where, what);
  };
  if (bytes.empty()) return damaged("the binary of this partition is missing");
  if (!bytes.starts_with(kMagic)) return damaged("this is no context of the simulated NPU");
  bytes.remove_prefix(kMagic.size());
  std::size_t length = 0;
  const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), length);
  if (error != std::errc() || end == bytes.data() + bytes.size() || *end != '\n')
    return damaged("its header has no length");
  bytes.remove_prefix(static_cast<std::size_t>(end - bytes.data()) + 1);
  if (length > bytes.size()) return damaged("it is cut off");
  TENONNX_ASSIGN_OR_RETURN(const Json json, parse_json(bytes.substr(0, length), where));
  const JsonReader reader(json, std::string(where));
  Compiled compiled;
  TENONNX_ASSIGN_OR_RETURN(compiled.partition, reader.string("partition"));
  TENONNX_ASSIGN_OR_RETURN(compiled.compatibility, reader.string("compatibility"));
  TENONNX_ASSIGN_OR_RETURN(const std::string backend, reader.string("backend"));
  compiled.backend = backend == "host" ? Backend::kHost : Backend::kDevice;
  TENONNX_ASSIGN_OR_RETURN(compiled.inputs, names_of(reader, "inputs"));
  TENONNX_ASSIGN_OR_RETURN(compiled.outputs, names_of(reader, "outputs"));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader nodes, reader.at("nodes"));
  TENONNX_ASSIGN_OR_RETURN(const auto items, nodes.items());
  for (const JsonReader& item : items) {
    TENONNX_ASSIGN_OR_RETURN(const auto pair, item.items());
    if (pair.size() != 2) return item.error("a name and an operator");
    ReportedNode& node = compiled.nodes.emplace_back();
    TENONNX_ASSIGN_OR_RETURN(node.name, pair[0].string());
    TENONNX_ASSIGN_OR_RETURN(node.op_type, pair[1].string());
  }
  compiled.model = bytes.substr(length);
  return compiled;
}

bool is_own_context(const Ort::ConstNode& node) {
  if (node.GetOperatorType() != kContextOperator || node.GetDomain() != kContextDomain)
    return false;
  const auto source = text_attribute(node, "source");
  return source.ok() && *source == kProviderName;
}

Result<Ort::Node> make_context_node(const Compiled& compiled, std::string_view bytes,
                                    const fs::path& model, const Settings& settings) {
  std::string carried(bytes);
  if (!settings.embed_contexts) {
    const std::string stem = model.stem().string();
    carried = fmt::format("{}_{}.bin", stem.empty() ? "model_ctx" : stem, compiled.number);
    if (!bytes.empty())
      TENONNX_RETURN_IF_ERROR(write_file_atomic(model.parent_path() / carried, bytes));
  }
  const std::int64_t embed = settings.embed_contexts ? 1 : 0;
  const std::int64_t main_context = 1;
  std::vector<Ort::OpAttr> attributes;
  const auto text = [&](const char* name, const std::string& value) {
    attributes.emplace_back(name, value.data(), static_cast<int>(value.size()), ORT_OP_ATTR_STRING);
  };
  attributes.emplace_back("main_context", &main_context, 1, ORT_OP_ATTR_INT);
  attributes.emplace_back("embed_mode", &embed, 1, ORT_OP_ATTR_INT);
  text("ep_cache_context", carried);
  text("source", kProviderName);
  text("partition_name", compiled.partition);
  text("ep_sdk_version", std::string(version()));
  text("hardware_architecture", settings.device.name);
  return Ort::Node(kContextOperator, kContextDomain, settings.context_prefix + compiled.partition,
                   compiled.inputs, compiled.outputs, attributes);
}

Result<Compiled> load_context(const Ort::ConstNode& node, const fs::path& model,
                              const Settings& settings) {
  const std::string where = fmt::format("EPContext node '{}'", node.GetName());
  TENONNX_ASSIGN_OR_RETURN(std::string bytes, text_attribute(node, "ep_cache_context"));
  if (embed_mode(node) == 0) {
    // A model that was given as bytes has no path; the session option says where it was then.
    const fs::path file = model.empty() ? fs::path(settings.context_file) : model;
    const auto inside =
        resolve_inside(file.parent_path().empty() ? fs::path(".") : file.parent_path(), bytes);
    if (!inside.ok()) return inside.status().at(where);
    std::error_code error;
    if (!fs::exists(*inside, error))
      return NotFound(
          "{}: its binary '{}' does not exist: the context lacks a partition. Copy the file beside "
          "the model, or compile the model again",
          where, inside->string());
    auto read = read_file(*inside);
    if (!read.ok()) return read.status().at(where);
    bytes = std::move(*read);
  }
  TENONNX_ASSIGN_OR_RETURN(Compiled compiled, read_context(bytes, where));
  const std::string own = compatibility_of(settings.device);
  if (compiled.compatibility != own)
    return FailedPrecondition(
        "{}: it was compiled for '{}', this provider is '{}'; compile the model again", where,
        compiled.compatibility, own);
  return compiled;
}

}  // namespace tenonnx::simnpu
