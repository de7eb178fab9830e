// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/context.h"

#include <onnx/onnx_pb.h>
#include <onnxruntime_session_options_config_keys.h>

#include <algorithm>
#include <system_error>
#include <vector>

#include "adapters/provider.h"
#include "adapters/qnn.h"
#include "base/files.h"
#include "base/status.h"
#include "model/graph.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kProvider = "provider:", kQnn = "qnn:";

bool is_context(const onnx::NodeProto& node) {
  return node.op_type() == "EPContext" && node.domain() == "com.microsoft";
}

std::string text_of(const onnx::NodeProto& node, std::string_view name) {
  const auto* attribute = find_attribute(node, name);
  return attribute == nullptr ? std::string() : attribute->s();
}

// Source: EPContext of com.microsoft; main_context and embed_mode are 1 where they are absent.
bool flag(const onnx::NodeProto& node, std::string_view name) {
  const auto* attribute = find_attribute(node, name);
  return attribute == nullptr || attribute->i() != 0;
}

ContextPartition partition_of(const onnx::NodeProto& node) {
  ContextPartition out;
  out.name = node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
  out.source = text_of(node, "source");
  out.main = flag(node, "main_context");
  if (out.main && !flag(node, "embed_mode")) out.file = text_of(node, "ep_cache_context");
  out.inputs.assign(node.input().begin(), node.input().end());
  out.outputs.assign(node.output().begin(), node.output().end());
  return out;
}

Status check_context(const onnx::NodeProto& node, const fs::path& directory) {
  const ContextPartition partition = partition_of(node);
  if (!partition.main) return {};
  if (text_of(node, "ep_cache_context").empty())
    return DataLoss(
        "the compiled partition '{}' (EPContext) is without its binary: a runtime would leave it "
        "to the CPU or fail; compile the model again",
        partition.name);
  if (partition.file.empty()) return {};
  TENONNX_ASSIGN_OR_RETURN(const fs::path file, resolve_inside(directory, partition.file));
  std::error_code error;
  const auto bytes = fs::file_size(file, error);
  if (error || bytes == 0)
    return DataLoss("the binary '{}' of the compiled partition '{}' (EPContext) is {}",
                    partition.file, partition.name, error ? "not there" : "empty");
  return {};
}

// A partition that shares the binary of another one holds none; that other one must be there.
Status check_shared(const std::vector<ContextPartition>& partitions) {
  for (const ContextPartition& one : partitions) {
    if (one.main) continue;
    const bool found = std::any_of(
        partitions.begin(), partitions.end(),
        [&](const ContextPartition& other) { return other.main && other.source == one.source; });
    if (!found)
      return DataLoss(
          "the compiled partition '{}' (EPContext, main_context 0) shares the binary of a main "
          "context, and the model has none{}: the partition that held it was taken out; compile "
          "the "
          "model again",
          one.name, one.source.empty() ? "" : fmt::format(" of '{}'", one.source));
  }
  return {};
}

}  // namespace

bool compiles_contexts(std::string_view address) {
  return address.starts_with(kProvider) || address.starts_with(kQnn);
}

Status compile_context_for(std::string_view address, const Model& model, const fs::path& out,
                           bool embed, const LoadOptions& options) {
  if (address.starts_with(kProvider))
    return compile_context(address.substr(kProvider.size()), model, out, embed, options);
  if (address.starts_with(kQnn))
    return compile_qnn_context(address.substr(kQnn.size()), model, out, embed, options);
  return Unsupported("executor '{}' compiles no contexts; provider:simnpu and qnn: do", address);
}

Status write_context(const ContextSession& create, const fs::path& out, bool embed,
                     std::string_view provider) {
  std::error_code error;
  if (fs::exists(out, error))
    return FailedPrecondition("'{}' exists already; remove it, or name another file", out.string());
  const fs::path folder = out.parent_path().empty() ? fs::path(".") : out.parent_path();
  const fs::path work = folder / (".tenonnx-context-" + random_suffix());
  auto hold = hold_interrupt();
  if (!fs::create_directory(work, error))
    return Io("cannot make a directory in '{}': {}", folder.string(), error.message());
  RemovedOnInterrupt on_interrupt(work, out);
  hold.unlock();
  Status status = [&]() -> Status {
    TENONNX_RETURN_IF_ERROR(
        create({{kOrtSessionOptionEpContextEnable, "1"},
                {kOrtSessionOptionEpContextEmbedMode, embed ? "1" : "0"},
                {kOrtSessionOptionEpContextFilePath, (work / out.filename()).string()}}));
    if (!fs::exists(work / out.filename(), error))
      return FailedPrecondition("{} compiled nothing: it took no node of the model", provider);
    std::vector<fs::path> beside;
    for (const auto& entry : fs::directory_iterator(work, error))
      if (entry.path().filename() != out.filename()) beside.push_back(entry.path().filename());
    beside.push_back(out.filename());  // the model last
    const auto all_or_none = hold_interrupt();
    for (const fs::path& file : beside) {
      fs::rename(work / file, folder / file, error);
      if (error) return Io("cannot write '{}': {}", (folder / file).string(), error.message());
    }
    on_interrupt.result_stands(work);
    return {};
  }();
  fs::remove_all(work, error);
  return status;
}

std::size_t count_contexts(const Model& model) {
  std::size_t count = 0;
  for (const onnx::NodeProto& node : model.proto().graph().node())
    count += is_context(node) ? 1 : 0;
  return count;
}

std::vector<ContextPartition> context_partitions(const Model& model) {
  std::vector<ContextPartition> out;
  for (const onnx::NodeProto& node : model.proto().graph().node())
    if (is_context(node)) out.push_back(partition_of(node));
  return out;
}

Status check_contexts(const Model& model, const fs::path& directory) {
  for (const onnx::NodeProto& node : model.proto().graph().node())
    if (is_context(node)) TENONNX_RETURN_IF_ERROR(check_context(node, directory));
  return check_shared(context_partitions(model));
}

}  // namespace tenonnx
