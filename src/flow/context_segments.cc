// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/context_segments.h"

#include <algorithm>
#include <chrono>

#include "adapters/context.h"
#include "adapters/process.h"
#include "base/files.h"
#include "base/status.h"
#include "base/temporary_directory.h"
#include "flow/placement_checks.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kSuffix = "_ctx.onnx";
constexpr std::chrono::minutes kTimeLimit{30};  // a 640 px detector takes the emulator a minute
constexpr std::size_t kTail = 1200;             // of a log, in a check

std::string reload_name(const Segment& segment) {
  return "context of " + segment.name + " in a fresh process";
}

Check reload(const fs::path& package, const Segment& segment, const fs::path& program) {
  const std::string name = reload_name(segment);
  const TemporaryDirectory work;
  if (work.path().empty()) return failed_check(name, "no temporary directory can be made");
  const fs::path log = work.path() / "log";
  const auto end = run_process(
      {program.string(), "placement", (package / segment.file).string(), "--on", segment.executor},
      log, kTimeLimit);
  if (!end.ok()) return failed_check(name, end.status().message());
  if (!end->timed_out && end->exit_code == 0) return passed_check(name);
  const auto text = read_file(log);
  std::string tail = text.ok() ? *text : "";
  if (tail.size() > kTail) tail = "..." + tail.substr(tail.size() - kTail);
  return failed_check(name, fmt::format("{}: {}", end->text(), tail));
}

Json to_json(const ContextPartition& partition) {
  Json out = {{"name", partition.name},
              {"main", partition.main},
              {"inputs", partition.inputs},
              {"outputs", partition.outputs}};
  if (!partition.file.empty()) out["file"] = partition.file;
  return out;
}

Json partitions_of(const Model& model) {
  Json out = Json::array();
  for (const ContextPartition& partition : context_partitions(model))
    out.push_back(to_json(partition));
  return out;
}

const Json* named(const Json& partitions, const Json& name) {
  for (const Json& one : partitions)
    if (one.is_object() && one.contains("name") && one.at("name") == name) return &one;
  return nullptr;
}

std::string names_of(const Json& tensors) {
  std::string out;
  for (const Json& tensor : tensors)
    out += fmt::format("{}'{}'", out.empty() ? "" : ", ",
                       tensor.is_string() ? tensor.get<std::string>() : tensor.dump());
  return out.empty() ? "none" : out;
}

// `recorded` is what the manifest says, of any form: a person may have edited it.
Status check_partitions(const Json& recorded, const Json& present) {
  if (!recorded.is_array())
    return DataLoss("the manifest's record of its compiled partitions is no list");
  for (const Json& one : recorded) {
    if (!one.is_object() || !one.contains("name") || !one.contains("inputs") ||
        !one.contains("outputs"))
      return DataLoss(
          "the manifest's record of a compiled partition lacks name, inputs or outputs");
    const Json* have = named(present, one.at("name"));
    const std::string name = one.at("name").dump();
    if (have == nullptr)
      return DataLoss(
          "the compiled partition {} (EPContext) is missing; {} of {} are there: deploy the model "
          "again",
          name, present.size(), recorded.size());
    for (const char* side : {"inputs", "outputs"})
      if (have->at(side) != one.at(side))
        return DataLoss(
            "the {} of the compiled partition {} are {}, in the manifest {}: the file was made "
            "again "
            "or changed; deploy the model again",
            side, name, names_of(have->at(side)), names_of(one.at(side)));
    if (*have != one)
      return DataLoss(
          "the compiled partition {} is recorded as {}, in the file it is {}; deploy the model "
          "again",
          name, one.dump(), have->dump());
  }
  if (recorded.size() > present.size())
    return DataLoss("the manifest records a compiled partition twice: {} of {} are there",
                    present.size(), recorded.size());
  for (const Json& one : present)
    if (named(recorded, one.at("name")) == nullptr)
      return DataLoss(
          "the compiled partition {} (EPContext) is not in the manifest: deploy the model again",
          one.at("name").dump());
  return {};
}

}  // namespace

Result<Json> record_contexts(const fs::path& package, const std::vector<Segment>& segments) {
  Json out = Json::object();
  for (const Segment& segment : segments) {
    if (!is_context(segment)) continue;
    TENONNX_ASSIGN_OR_RETURN(const Model model, Model::load(package / segment.file));
    out[segment.name] = partitions_of(model);
  }
  return out;
}

Status check_recorded_contexts(const fs::path& package, const std::vector<Segment>& segments,
                               const Json& settings) {
  const auto record = settings.find("contexts");
  if (record != settings.end() && record->is_object())
    for (const auto& item : record->items())
      if (std::none_of(segments.begin(), segments.end(), [&](const Segment& one) {
            return one.name == item.key() && is_context(one);
          }))
        return DataLoss(
            "the manifest records compiled partitions of '{}', which is no compiled segment",
            item.key());
  for (const Segment& segment : segments) {
    if (!is_context(segment)) continue;
    const std::string where = fmt::format("segment '{}'", segment.name);
    TENONNX_ASSIGN_OR_RETURN(const fs::path file, resolve_inside(package, segment.file));
    auto model = Model::load(file);
    if (!model.ok()) return model.status().at(where);
    TENONNX_RETURN_IF_ERROR(check_contexts(*model, package).at(where));
    const Json present = partitions_of(*model);
    if (present.empty())
      return DataLoss(
          "{}: '{}' holds no compiled partition (EPContext): it is a plain model, which the device "
          "would have to compile; deploy the model again",
          where, segment.file);
    const bool any = record != settings.end() && record->is_object();
    const auto recorded = any ? record->find(segment.name) : settings.end();
    if (!any || recorded == record->end())
      return DataLoss(
          "{}: the manifest does not record its compiled partitions (settings/contexts), so that "
          "nothing tells whether they are those that were proved; deploy the model again",
          where);
    TENONNX_RETURN_IF_ERROR(check_partitions(*recorded, present).at(where));
  }
  return {};
}

bool ships_context(std::string_view address) { return address.starts_with("qnn:"); }

std::string context_file(std::string_view segment) { return fmt::format("{}{}", segment, kSuffix); }

bool is_context(const Segment& segment) { return segment.file.ends_with(kSuffix); }

bool any_context(const std::vector<Segment>& segments) {
  return std::any_of(segments.begin(), segments.end(), is_context);
}

Status compile_segment(const Segment& segment, const Model& model, const fs::path& directory,
                       const LoadOptions& options) {
  LoadOptions load = options;
  load.disable_fallback = true;
  load.profile = false;
  load.reuse_results = true;  // an emulator's context, too, is the same for the same graph
  const fs::path out = directory / segment.file;
  TENONNX_RETURN_IF_ERROR(compile_context_for(segment.executor, model, out, true, load));
  TENONNX_ASSIGN_OR_RETURN(const Model compiled, Model::load(out));
  if (count_contexts(compiled) == 0)
    return Unsupported("'{}' holds no compiled partition after compiling it for '{}'", segment.file,
                       segment.executor);
  return check_contexts(compiled, directory);
}

std::size_t count_contexts(const std::vector<Segment>& segments) {
  return static_cast<std::size_t>(std::count_if(segments.begin(), segments.end(), is_context));
}

std::vector<Check> reload_contexts(const fs::path& package, const std::vector<Segment>& segments,
                                   const fs::path& program, RunBudget& budget) {
  std::vector<Check> out;
  if (program.empty()) return out;
  for (const Segment& segment : segments) {
    if (!is_context(segment)) continue;
    // Placement is never answered from a cache.
    if (budget.take(false))
      out.push_back(reload(package, segment, program));
    else
      out.push_back(
          inconclusive_check(reload_name(segment), "the budget of device runs is used up"));
  }
  return out;
}

}  // namespace tenonnx
