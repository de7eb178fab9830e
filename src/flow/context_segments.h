// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Segments that ship compiled: NAME_ctx.onnx, whose nodes EPContext hold what the vendor's compiler
// made, so that a board compiles nothing.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "flow/run_budget.h"
#include "metrics/limit.h"
#include "model/model.h"
#include "ort/executor.h"
#include "package/manifest.h"

namespace tenonnx {

// Whether deploy compiles a segment for an executor of this address: where compiling takes the
// board long, or needs what it does not have.
bool ships_context(std::string_view address);

// "encoder_ctx.onnx"
std::string context_file(std::string_view segment);
bool is_context(const Segment& segment);
bool any_context(const std::vector<Segment>& segments);

// Compiles `model` for the segment's executor into directory/segment.file, embedded, with fallback
// forbidden. Unsupported: what the compiler says.
Status compile_segment(const Segment& segment, const Model& model,
                       const std::filesystem::path& directory, const LoadOptions& options);

// The partitions of every segment that ships compiled, as the manifest records them
// (settings["contexts"]): segment -> [{"name", "main", "inputs", "outputs", "file"}].
Result<Json> record_contexts(const std::filesystem::path& package,
                             const std::vector<Segment>& segments);
// DataLoss: what check_contexts (adapters/context.h) finds, binaries above all; and a segment whose
// partitions are not those of the record: one is missing or new, or takes
// or makes other tensors, or in another order; a compiled segment without a partition, or without a
// record.
Status check_recorded_contexts(const std::filesystem::path& package,
                               const std::vector<Segment>& segments, const Json& settings);

// Each context loaded and run by `program` (the tenonnx command) in a process of its own, with
// fallback forbidden and the placement read from the profile: what the compiling session left in
// memory is no help there. A check a segment; none where the package has no context or `program` is
// empty. Each is a run on the device: where the budget is used up the check is INCONCLUSIVE.
std::vector<Check> reload_contexts(const std::filesystem::path& package,
                                   const std::vector<Segment>& segments,
                                   const std::filesystem::path& program, RunBudget& budget);
// How many runs that takes.
std::size_t count_contexts(const std::vector<Segment>& segments);

}  // namespace tenonnx
