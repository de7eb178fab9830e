// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/region_sessions.h"

#include <utility>

#include "base/files.h"
#include "base/npy.h"
#include "base/status.h"
#include "passes/proof_grids.h"
#include "passes/proof_inputs.h"

namespace tenonnx {
namespace {

std::string shapes_of(const TensorMap& values) {
  std::string out;
  for (const auto& [name, tensor] : values)
    out += fmt::format("{}{}{};", name, to_string(tensor.dtype()), to_string(tensor.shape()));
  return out;
}

}  // namespace

RegionSessions::RegionSessions(const Executor& executor, int threads, std::uint64_t seed,
                               const Model& before, const Model& after,
                               std::vector<const ChangedRegion*> regions)
    : executor_(executor),
      threads_(threads),
      seed_(seed),
      before_(before),
      after_(after),
      regions_(std::move(regions)),
      names_(regions_) {}

Result<TensorMap> RegionSessions::run(RegionForm form, const TensorMap& values) {
  const Side side = form == RegionForm::kAfter ? Side::kAfter : Side::kBefore;
  const TensorMap inputs = region_inputs(side, regions_, values);
  std::string shapes = shapes_of(inputs);
  Loaded& loaded = loaded_[static_cast<std::size_t>(form)];
  if (loaded.graph == nullptr || loaded.shapes != shapes) {
    TENONNX_ASSIGN_OR_RETURN(Model model, regions_model(side == Side::kAfter ? after_ : before_,
                                                        side, regions_, names_, values));
    if (form == RegionForm::kBeforeDisturbed) {
      TENONNX_RETURN_IF_ERROR(disturb_constants(model, seed_));
      TENONNX_RETURN_IF_ERROR(disturb_grids(model, seed_));
      model.share_weights();
    }
    LoadOptions options;
    options.intra_op_threads = threads_;
    options.optimization =
        form == RegionForm::kBeforeOptimized ? Optimization::kAll : Optimization::kDisabled;
    TENONNX_ASSIGN_OR_RETURN(loaded.graph, executor_.load(model, options));
    loaded.shapes = std::move(shapes);
  }
  return loaded.graph->run(inputs);
}

namespace {

bool is_of_minimal_case(const std::string& name) {
  return name == "old.onnx" || name == "new.onnx" || name == "inputs.npz" ||
         name == "expected.npz" || name == "README.md";
}

}  // namespace

Status holds_only_minimal_cases(const std::filesystem::path& directory) {
  return holds_only(directory, "a minimal case", [](const std::string& relative) {
    const std::filesystem::path path = relative;  // "<pass>_<n>/old.onnx"
    const std::string name = path.parent_path().string();
    const std::size_t number = name.rfind('_');
    return number != std::string::npos && number + 1 < name.size() &&
           name.find_first_not_of("0123456789", number + 1) == std::string::npos &&
           name.find('/') == std::string::npos && is_of_minimal_case(path.filename().string());
  });
}

Status write_minimal_case(const std::filesystem::path& directory, std::string_view title,
                          const Model& before, const Model& after, const ChangedRegion& region,
                          const TensorMap& values, const TensorMap& expected) {
  const auto is_ours = [](const std::filesystem::path& there) {
    return holds_only(there, "a minimal case", is_of_minimal_case);
  };
  TENONNX_ASSIGN_OR_RETURN(auto staged, StagedDirectory::create(directory, true, is_ours));
  // Both sides take the same inputs, whether they need them or not, so that one file serves both.
  ChangedRegion both = region;
  for (RegionTensor& input : both.inputs) input.in_before = input.in_after = true;
  const ChangedRegion* const one[] = {&both};
  const RegionNames names(one);
  TENONNX_ASSIGN_OR_RETURN(const Model old_model,
                           regions_model(before, Side::kBefore, one, names, values));
  TENONNX_ASSIGN_OR_RETURN(const Model new_model,
                           regions_model(after, Side::kAfter, one, names, values));
  TENONNX_RETURN_IF_ERROR(old_model.save(staged.path() / "old.onnx"));
  TENONNX_RETURN_IF_ERROR(new_model.save(staged.path() / "new.onnx"));
  TENONNX_RETURN_IF_ERROR(
      write_npz(staged.path() / "inputs.npz", region_inputs(Side::kBefore, one, values)));
  TENONNX_RETURN_IF_ERROR(write_npz(staged.path() / "expected.npz", expected));
  const std::string readme = fmt::format(
      "{}\n\nold.onnx is the region before the pass, new.onnx after it. Both take the arrays of "
      "inputs.npz;\nexpected.npz is what old.onnx gives on the cpu with optimisation disabled. To "
      "compare the two:\n\n    tenonnx compare old.onnx new.onnx --inputs inputs.npz\n",
      title);
  TENONNX_RETURN_IF_ERROR(write_file_atomic(staged.path() / "README.md", readme));
  return staged.publish();
}

}  // namespace tenonnx
