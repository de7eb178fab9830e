// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "base/status.h"
#include "metrics/limit.h"
#include "package/manifest.h"

namespace tenonnx {
namespace {

constexpr std::string_view kStages[] = {"export", "build", "runtime_init", "forward"};

Status check_word(std::string_view field, std::string_view word,
                  std::initializer_list<std::string_view> allowed) {
  if (std::find(allowed.begin(), allowed.end(), word) != allowed.end()) return {};
  return DataLoss("{} is '{}', allowed: '{}'", field, word,
                  fmt::join(allowed.begin(), allowed.end(), "', '"));
}

Status check_sha256(std::string_view field, std::string_view text) {
  const bool hex = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  if (text.size() == 64 && hex) return {};
  return DataLoss("{} is '{}', expected a SHA-256: 64 lower-case hex digits", field, text);
}

std::string kind_of(const TensorInfo& tensor) {
  return fmt::format("{} {}", to_string(tensor.dtype), to_string(tensor.shape));
}

std::set<std::string> contract_inputs(const Contract& contract) {
  std::set<std::string> names = {contract.image.name};
  if (contract.size) names.insert(contract.size->name);
  return names;
}

std::vector<std::string> contract_outputs(const Contract& contract) {
  const Outputs& outputs = contract.outputs;
  if (outputs.kind == OutputKind::kRaw) return {outputs.logits, outputs.pred_boxes};
  return {outputs.labels, outputs.boxes, outputs.scores};
}

// Segments run in their order, so that each input is one of the contract's or was made before.
Status check_chain(const Manifest& manifest) {
  if (manifest.segments.empty()) return DataLoss("the package has no segment");
  const std::set<std::string> graph_inputs = contract_inputs(manifest.contract);
  std::map<std::string, std::pair<TensorInfo, std::string>> made;  // tensor -> info, segment
  std::set<std::string> names;
  std::set<std::string> files;
  for (const Segment& segment : manifest.segments) {
    if (segment.name.empty()) return DataLoss("a segment has no name");
    if (!names.insert(segment.name).second)
      return DataLoss("two segments are named '{}'", segment.name);
    if (!files.insert(segment.file).second)
      return DataLoss("segment '{}': another segment has the same file '{}'", segment.name,
                      segment.file);
    if (segment.executor.empty()) return DataLoss("segment '{}' names no executor", segment.name);
    if (segment.outputs.empty()) return DataLoss("segment '{}' has no output", segment.name);
    std::set<std::string> inputs;
    for (const TensorInfo& input : segment.inputs) {
      if (!inputs.insert(input.name).second)
        return DataLoss("segment '{}' has two inputs named '{}'", segment.name, input.name);
      if (graph_inputs.contains(input.name)) continue;
      const auto found = made.find(input.name);
      if (found == made.end())
        return DataLoss(
            "the segments do not chain: input '{}' of segment '{}' is neither an input of the "
            "contract ('{}') nor an output of an earlier segment",
            input.name, segment.name, fmt::join(graph_inputs, "', '"));
      const auto& [info, producer] = found->second;
      if (!fits(info, input))
        return DataLoss(
            "the segments do not chain: '{}' leaves segment '{}' as {} and enters segment '{}' as "
            "{}",
            input.name, producer, kind_of(info), segment.name, kind_of(input));
    }
    for (const TensorInfo& output : segment.outputs) {
      if (graph_inputs.contains(output.name))
        return DataLoss("segment '{}' has an output with the name of the model's input '{}'",
                        segment.name, output.name);
      if (!made.emplace(output.name, std::make_pair(output, segment.name)).second)
        return DataLoss("tensor '{}' is an output of two segments, '{}' and '{}'", output.name,
                        made.at(output.name).second, segment.name);
    }
  }
  for (const std::string& output : contract_outputs(manifest.contract))
    if (!made.contains(output))
      return DataLoss("no segment has the contract's output '{}'", output);
  std::set<std::string> boundaries;
  std::vector<std::string> sources;
  for (const auto& [name, source] : manifest.boundaries) {
    sources.push_back(source);
    if (!boundaries.insert(name).second) return DataLoss("two boundaries are named '{}'", name);
    const bool used = std::any_of(
        manifest.segments.begin(), manifest.segments.end(), [&name = name](const Segment& segment) {
          return std::any_of(segment.inputs.begin(), segment.inputs.end(),
                             [&name](const TensorInfo& input) { return input.name == name; });
        });
    if (!made.contains(name) || !used)
      return DataLoss("boundary '{}' does not cross: it is not {} of a segment", name,
                      used ? "an output" : "an input");
  }
  if (const auto& cut = manifest.contract.cut; !cut.empty() && cut != sources)
    return DataLoss("the boundaries' source tensors are '{}', but the contract's cut is '{}'",
                    fmt::join(sources, "', '"), fmt::join(cut, "', '"));
  return {};
}

// A manifest is not signed: who edits it can make it say anything. But it must not contradict
// itself, so that a FAIL cannot be turned into a PASS by changing the one word.
Status check_verdict(const Manifest& manifest) {
  TENONNX_ASSIGN_OR_RETURN(const std::vector<Check> checks,
                           checks_from_json(JsonReader(manifest.checks, "checks")));
  for (const Check& check : checks) {
    // A miss may be INCONCLUSIVE, for a sample that is too small; only PASS needs what was
    // measured.
    if (check.verdict != Verdict::kPass) continue;
    const Verdict measured =
        make_check(check.name, check.value, check.comparison, check.limit).verdict;
    if (measured == Verdict::kPass) continue;
    if (measured == Verdict::kInconclusive)
      return DataLoss("check '{}' says {}, but nothing was measured", check.name,
                      to_string(check.verdict));
    return DataLoss("check '{}' says {}, but {:.6g} {} {:.6g} does not hold", check.name,
                    to_string(check.verdict), check.value, to_string(check.comparison),
                    check.limit.value);
  }
  TENONNX_ASSIGN_OR_RETURN(const Verdict verdict, verdict_from_string(manifest.verdict));
  const Verdict overall = overall_verdict(checks);
  if (combine(overall, verdict) != verdict)
    return DataLoss("the verdict is {}, but its checks give {}", manifest.verdict,
                    to_string(overall));
  if (verdict == Verdict::kPass)
    for (const std::string_view name : kStages) {
      const auto found = std::find_if(manifest.stages.begin(), manifest.stages.end(),
                                      [&](const StageStatus& one) { return one.stage == name; });
      if (found == manifest.stages.end())
        return DataLoss("the verdict is {}, but there is no stage '{}'", manifest.verdict, name);
      if (found->status == "not run")
        return DataLoss("the verdict is {}, but stage '{}' was not run", manifest.verdict, name);
    }
  for (const StageStatus& stage : manifest.stages)
    if (stage.status == "failed" && verdict != Verdict::kFail)
      return DataLoss("the verdict is {}, but stage '{}' failed: {}", manifest.verdict, stage.stage,
                      stage.detail);
  return {};
}

}  // namespace

bool fits(const TensorInfo& a, const TensorInfo& b) {
  const auto same = [](std::int64_t m, std::int64_t n) { return m == n || m < 0 || n < 0; };
  return a.dtype == b.dtype &&
         (!a.has_rank || !b.has_rank ||
          std::equal(a.shape.begin(), a.shape.end(), b.shape.begin(), b.shape.end(), same));
}

Status check_manifest(const Manifest& manifest) {
  if (manifest.schema_version != kManifestSchemaVersion)
    return Unsupported("schema_version is {}, and this tenonnx reads {}", manifest.schema_version,
                       kManifestSchemaVersion);
  TENONNX_RETURN_IF_ERROR(
      check_word("verdict", manifest.verdict, {"PASS", "FAIL", "INCONCLUSIVE"}));
  TENONNX_RETURN_IF_ERROR(check_sha256("source_model/sha256", manifest.source_sha256));
  TENONNX_RETURN_IF_ERROR(check_sha256("inputs_sha256", manifest.inputs_sha256));
  std::set<std::string> stages;
  for (const StageStatus& stage : manifest.stages) {
    TENONNX_RETURN_IF_ERROR(
        check_word("a stage", stage.stage, {kStages[0], kStages[1], kStages[2], kStages[3]}));
    TENONNX_RETURN_IF_ERROR(check_word(fmt::format("the status of stage '{}'", stage.stage),
                                       stage.status, {"ok", "failed", "not run"}));
    if (!stages.insert(stage.stage).second)
      return DataLoss("stage '{}' is named twice", stage.stage);
  }
  std::set<std::string> versions;
  for (const auto& [name, version] : manifest.versions)
    if (!versions.insert(name).second) return DataLoss("version '{}' is named twice", name);
  std::set<std::string> paths;
  for (const PackagedFile& file : manifest.files) {
    TENONNX_RETURN_IF_ERROR(
        check_sha256(fmt::format("the hash of file '{}'", file.path), file.sha256));
    if (!paths.insert(file.path).second) return DataLoss("file '{}' is named twice", file.path);
  }
  for (const Segment& segment : manifest.segments)
    if (!paths.contains(segment.file))
      return DataLoss("file '{}' of segment '{}' is not among the package's files", segment.file,
                      segment.name);
  TENONNX_RETURN_IF_ERROR(check_chain(manifest));
  return check_verdict(manifest);
}

}  // namespace tenonnx
