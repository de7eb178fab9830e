// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/probe.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/status.h"
#include "flow/compare_setup.h"
#include "metrics/elements.h"
#include "metrics/softmax_sum.h"
#include "ort/capture.h"

namespace tenonnx {
namespace {

constexpr std::int64_t kUnknownBytes = std::int64_t{1} << 20;

class Prober {
 public:
  Prober(const ProbeOptions& options, CompareSetup& setup, ProbeResult& result)
      : options_(options), setup_(setup), result_(result), index_(setup.reference.proto().graph()) {
    for (const ComputedTensor& tensor : computed_tensors(setup.reference, index_))
      bytes_[tensor.name] = tensor.bytes;
  }

  Status run() {
    TENONNX_ASSIGN_OR_RETURN(const std::vector<Piece> pieces,
                             select_pieces(index_, options_.selection));
    for (const Piece& piece : pieces) {
      ProbedPiece probed;
      probed.piece = piece;
      result_.pieces.push_back(std::move(probed));
    }
    std::vector<std::int64_t> sizes;
    for (const Piece& piece : pieces) sizes.push_back(bytes_of(piece));
    const auto windows = plan_windows(sizes, options_.common.memory_mib << 20);
    for (std::size_t w = 0; w < windows.size(); ++w) {
      if (options_.common.progress) options_.common.progress("probe", w, windows.size());
      TENONNX_RETURN_IF_ERROR(run_window(windows[w]));
    }
    std::stable_sort(
        result_.pieces.begin(), result_.pieces.end(), [](const auto& a, const auto& b) {
          return std::pair(a.compared(), a.ratio()) > std::pair(b.compared(), b.ratio());
        });
    return {};
  }

 private:
  std::int64_t bytes_of(const Piece& piece) const {
    std::int64_t sum = 0;
    for (const auto* names : {&piece.inputs, &piece.outputs})
      for (const std::string& name : *names)
        sum += bytes_.contains(name) ? bytes_.at(name) : kUnknownBytes;
    return sum;
  }

  Status run_window(const Window& window) {
    std::vector<std::string> wanted;
    std::set<std::string> seen;
    std::vector<std::unique_ptr<LoadedGraph>> parts;
    for (std::size_t i = window.begin; i < window.end; ++i) {
      const Piece& piece = result_.pieces[i].piece;
      for (const auto* names : {&piece.inputs, &piece.outputs})
        for (const std::string& name : *names)
          if (!index_.find(name)->is_input && seen.insert(name).second) wanted.push_back(name);
      TENONNX_ASSIGN_OR_RETURN(const Model part, cut_out(setup_.reference, piece));
      auto loaded = setup_.on->load(part, options_.common.load);
      if (!loaded.ok())
        return loaded.status().at(fmt::format("{} on '{}'", piece.label, options_.common.on));
      parts.push_back(std::move(*loaded));
    }
    LoadOptions exact = options_.common.load;
    exact.optimization = Optimization::kDisabled;
    TENONNX_ASSIGN_OR_RETURN(const auto whole,
                             load_with_outputs(*setup_.ref, setup_.reference, wanted, exact));
    for (std::size_t n = 0; n < setup_.inputs.size(); ++n) {
      TENONNX_ASSIGN_OR_RETURN(const ReferenceInput input, setup_.inputs.load(n));
      TENONNX_ASSIGN_OR_RETURN(TensorMap tensors, whole->run(inputs_of(*whole, input.tensors)));
      for (const auto& [name, tensor] : input.tensors) tensors.try_emplace(name, tensor);
      for (std::size_t i = window.begin; i < window.end; ++i)
        TENONNX_RETURN_IF_ERROR(run_piece(result_.pieces[i], *parts[i - window.begin], tensors));
    }
    return {};
  }

  Status run_piece(ProbedPiece& probed, LoadedGraph& part, const TensorMap& reference) const {
    const Piece& piece = probed.piece;
    auto got = part.run(inputs_of(part, reference));
    if (!got.ok()) return got.status().at(piece.label);
    if (probed.input_dtypes.empty())
      for (const std::string& name : piece.inputs)
        probed.input_dtypes += fmt::format("{}{} {}", probed.input_dtypes.empty() ? "" : ", ",
                                           to_string(reference.at(name).dtype()), name);
    for (const std::string& name : piece.outputs) {
      const Tensor& expected = reference.at(name);
      if (!is_floating(expected.dtype())) {
        const std::string why =
            fmt::format("'{}' holds {}, which has no rounding", name, to_string(expected.dtype()));
        if (std::find(probed.skipped.begin(), probed.skipped.end(), why) == probed.skipped.end())
          probed.skipped.push_back(why);
        continue;
      }
      ProbedOutput& output = output_named(probed, name);
      const Tensor input = piece.nodes.size() == 1 && piece.inputs.size() == 1 &&
                                   is_floating(reference.at(piece.inputs[0]).dtype())
                               ? reference.at(piece.inputs[0])
                               : Tensor();
      auto added = output.profile.add(expected, got->at(name), input);
      if (!added.ok()) return added.at(fmt::format("'{}' of {}", name, piece.label));
      TENONNX_RETURN_IF_ERROR(add_softmax(piece, expected, got->at(name), output));
    }
    return {};
  }

  Status add_softmax(const Piece& piece, const Tensor& expected, const Tensor& got,
                     ProbedOutput& output) const {
    const onnx::NodeProto& last = index_.graph().node(piece.nodes.back());
    if (last.op_type() != "Softmax") return {};
    const int axis = static_cast<int>(attribute_or(last, "axis", std::int64_t{-1}));
    TENONNX_ASSIGN_OR_RETURN(const SoftmaxSum sum, softmax_sum(got, axis));
    TENONNX_ASSIGN_OR_RETURN(const SoftmaxSum baseline,
                             softmax_sum_baseline(expected, axis, result_.storage));
    output.softmax_sum = std::max(output.softmax_sum.value_or(0), sum.max_error);
    output.softmax_baseline = std::max(output.softmax_baseline.value_or(0), baseline.max_error);
    return {};
  }

  ProbedOutput& output_named(ProbedPiece& probed, const std::string& name) const {
    for (ProbedOutput& output : probed.outputs)
      if (output.tensor == name) return output;
    probed.outputs.push_back({name, ErrorProfile(result_.storage), {}, {}});
    return probed.outputs.back();
  }

  const ProbeOptions& options_;
  CompareSetup& setup_;
  ProbeResult& result_;
  const GraphIndex index_;
  std::map<std::string, std::int64_t> bytes_;
};

}  // namespace

double ProbedPiece::ratio() const {
  double largest = 0;
  for (const ProbedOutput& output : outputs)
    largest = std::max(largest, output.profile.lost() > 0 ? std::numeric_limits<double>::infinity()
                                                          : output.profile.ratio());
  return largest;
}

bool ProbedPiece::compared() const {
  return std::any_of(outputs.begin(), outputs.end(),
                     [](const ProbedOutput& output) { return output.profile.compared(); });
}

bool ProbeResult::compared() const {
  return std::any_of(pieces.begin(), pieces.end(),
                     [](const ProbedPiece& piece) { return piece.compared(); });
}

Result<ProbeResult> probe(const ProbeOptions& options) {
  TENONNX_ASSIGN_OR_RETURN(CompareSetup setup, set_up_comparison(options.common));
  for (const Executor* executor : {setup.ref.get(), setup.on.get()}) {
    TENONNX_ASSIGN_OR_RETURN(const auto recorded, executor->recorded_tensors(setup.source));
    if (recorded)
      return InvalidArgument(
          "executor '{}' holds recordings and cannot run a node on its own: probe needs two "
          "executors that compute",
          executor->address());
  }
  ProbeResult result;
  result.model = options.common.reference.filename().string();
  result.sha256 = setup.source.sha256();
  result.ref = options.common.ref;
  result.on = options.common.on;
  result.inputs = setup.inputs.description();
  result.random_inputs = setup.inputs.is_random();
  result.storage = setup.settings.storage;
  result.notes = setup.notes;
  result.versions = setup.on->versions();
  TENONNX_RETURN_IF_ERROR(Prober(options, setup, result).run());
  return result;
}

}  // namespace tenonnx
