// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <span>
#include <utility>

#include "base/status.h"
#include "flow/compare_tensor.h"

namespace tenonnx {
namespace {

Json floor_json(const NoiseFloor& floor) {
  return {{"max_abs", json_number(floor.max_abs)},
          {"relative_l2", json_number(floor.relative_l2)},
          {"overflowed", floor.overflowed},
          {"first_overflowed_index", floor.first_overflowed_index},
          {"origin", floor.origin}};
}

Result<NoiseFloor> floor_from_json(const JsonReader& reader) {
  NoiseFloor floor;
  TENONNX_ASSIGN_OR_RETURN(floor.max_abs, reader.number("max_abs"));
  TENONNX_ASSIGN_OR_RETURN(floor.relative_l2, reader.number("relative_l2"));
  TENONNX_ASSIGN_OR_RETURN(floor.overflowed, reader.integer("overflowed"));
  TENONNX_ASSIGN_OR_RETURN(floor.first_overflowed_index, reader.integer("first_overflowed_index"));
  TENONNX_ASSIGN_OR_RETURN(floor.origin, reader.string("origin"));
  return floor;
}

Result<NonFiniteCount> non_finite_from_json(const JsonReader& reader) {
  NonFiniteCount count;
  TENONNX_ASSIGN_OR_RETURN(count.inf, reader.integer("inf"));
  TENONNX_ASSIGN_OR_RETURN(count.nan, reader.integer("nan"));
  return count;
}

Result<std::optional<double>> optional_number(const JsonReader& reader, std::string_view key) {
  if (!reader.has(key)) return std::optional<double>();
  TENONNX_ASSIGN_OR_RETURN(const double value, reader.number(key));
  return std::optional<double>(value);
}

Result<TensorError> error_from_json(const JsonReader& reader) {
  TensorError error;
  TENONNX_ASSIGN_OR_RETURN(error.count, reader.integer("count"));
  TENONNX_ASSIGN_OR_RETURN(error.compared, reader.integer("compared"));
  TENONNX_ASSIGN_OR_RETURN(error.differing, reader.integer("differing"));
  TENONNX_ASSIGN_OR_RETURN(error.cosine, optional_number(reader, "cosine"));
  TENONNX_ASSIGN_OR_RETURN(error.relative_l2, optional_number(reader, "relative_l2"));
  TENONNX_ASSIGN_OR_RETURN(error.max_abs, reader.number("max_abs"));
  TENONNX_ASSIGN_OR_RETURN(error.max_abs_index, reader.integer("max_abs_index"));
  TENONNX_ASSIGN_OR_RETURN(error.mean_abs, reader.number("mean_abs"));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader ours, reader.at("reference_nonfinite"));
  TENONNX_ASSIGN_OR_RETURN(error.reference, non_finite_from_json(ours));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader theirs, reader.at("candidate_nonfinite"));
  TENONNX_ASSIGN_OR_RETURN(error.candidate, non_finite_from_json(theirs));
  TENONNX_ASSIGN_OR_RETURN(error.broken, reader.integer("broken"));
  TENONNX_ASSIGN_OR_RETURN(error.first_broken_index, reader.integer("first_broken_index"));
  TENONNX_ASSIGN_OR_RETURN(error.masked_changed, reader.integer("masked_changed"));
  return error;
}

Result<SliceFigures> slice_from_json(const JsonReader& reader) {
  SliceFigures slice;
  TENONNX_ASSIGN_OR_RETURN(const std::int64_t axis, reader.integer("axis"));
  slice.axis = static_cast<int>(axis);
  TENONNX_ASSIGN_OR_RETURN(slice.begin, reader.integer("begin"));
  TENONNX_ASSIGN_OR_RETURN(slice.end, reader.integer("end"));
  TENONNX_ASSIGN_OR_RETURN(slice.magnitude, reader.number("magnitude"));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader error, reader.at("error"));
  TENONNX_ASSIGN_OR_RETURN(slice.error, error_from_json(error));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader floor, reader.at("floor"));
  TENONNX_ASSIGN_OR_RETURN(slice.floor, floor_from_json(floor));
  return slice;
}

}  // namespace

Json to_json(const TensorComparison& tensor) {
  Json json = {{"error", to_json(tensor.error)},
               {"floor",
                {{"storage", floor_json(tensor.storage)},
                 {"path", floor_json(tensor.path)},
                 {"path_differing", tensor.path_differing}}},
               {"inputs", tensor.inputs},
               {"worst_input", tensor.worst_input},
               {"saturation",
                {{"beyond", tensor.saturation.beyond},
                 {"saturated", tensor.saturation.saturated},
                 {"max_abs", json_number(tensor.saturation.max_abs)},
                 {"first_index", tensor.saturation.first_index},
                 {"infinities", tensor.non_finite.saturated},
                 {"lost", tensor.non_finite.lost},
                 {"first_lost_index", tensor.non_finite.first_lost_index}}}};
  if (const auto sqnr = sqnr_db(tensor.error)) json["sqnr_db"] = json_number(*sqnr);
  if (tensor.max_ulp) json["max_ulp"] = *tensor.max_ulp;
  if (tensor.psnr)
    json["psnr"] = {{"db", json_number(tensor.psnr->db)},
                    {"peak", json_number(tensor.psnr->peak)},
                    {"origin", tensor.psnr->origin}};
  if (tensor.softmax_sum) {
    json["softmax_sum_error"] = json_number(*tensor.softmax_sum);
    json["softmax_sum_baseline"] = json_number(tensor.softmax_baseline.value_or(0));
  }
  if (tensor.unmatched_cosine) json["unmatched_cosine"] = json_number(*tensor.unmatched_cosine);
  if (!tensor.gates.empty()) json["gates"] = to_json(std::span<const Check>(tensor.gates));
  if (!tensor.slices.empty()) {
    json["slices"] = Json::array();
    for (const SliceFigures& slice : tensor.slices)
      json["slices"].push_back({{"axis", slice.axis},
                                {"begin", slice.begin},
                                {"end", slice.end},
                                {"magnitude", json_number(slice.magnitude)},
                                {"error", to_json(slice.error)},
                                {"floor", floor_json(slice.floor)}});
  }
  return json;
}

Result<TensorComparison> tensor_comparison_from_json(const JsonReader& reader) {
  TensorComparison tensor;
  TENONNX_ASSIGN_OR_RETURN(const JsonReader error, reader.at("error"));
  TENONNX_ASSIGN_OR_RETURN(tensor.error, error_from_json(error));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader floor, reader.at("floor"));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader storage, floor.at("storage"));
  TENONNX_ASSIGN_OR_RETURN(tensor.storage, floor_from_json(storage));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader path, floor.at("path"));
  TENONNX_ASSIGN_OR_RETURN(tensor.path, floor_from_json(path));
  TENONNX_ASSIGN_OR_RETURN(tensor.path_differing, floor.integer("path_differing"));
  TENONNX_ASSIGN_OR_RETURN(const std::int64_t inputs, reader.integer("inputs"));
  tensor.inputs = static_cast<int>(inputs);
  TENONNX_ASSIGN_OR_RETURN(tensor.worst_input, reader.string("worst_input"));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader saturation, reader.at("saturation"));
  TENONNX_ASSIGN_OR_RETURN(tensor.saturation.beyond, saturation.integer("beyond"));
  TENONNX_ASSIGN_OR_RETURN(tensor.saturation.saturated, saturation.integer("saturated"));
  TENONNX_ASSIGN_OR_RETURN(tensor.saturation.max_abs, saturation.number("max_abs"));
  TENONNX_ASSIGN_OR_RETURN(tensor.saturation.first_index, saturation.integer("first_index"));
  TENONNX_ASSIGN_OR_RETURN(tensor.non_finite.saturated, saturation.integer("infinities"));
  TENONNX_ASSIGN_OR_RETURN(tensor.non_finite.lost, saturation.integer("lost"));
  TENONNX_ASSIGN_OR_RETURN(tensor.non_finite.first_lost_index,
                           saturation.integer("first_lost_index"));
  if (reader.has("max_ulp")) {
    TENONNX_ASSIGN_OR_RETURN(tensor.max_ulp, reader.integer("max_ulp"));
  }
  if (reader.has("psnr")) {
    TENONNX_ASSIGN_OR_RETURN(const JsonReader psnr, reader.at("psnr"));
    tensor.psnr.emplace();
    TENONNX_ASSIGN_OR_RETURN(tensor.psnr->db, psnr.number("db"));
    TENONNX_ASSIGN_OR_RETURN(tensor.psnr->peak, psnr.number("peak"));
    TENONNX_ASSIGN_OR_RETURN(tensor.psnr->origin, psnr.string("origin"));
  }
  TENONNX_ASSIGN_OR_RETURN(tensor.softmax_sum, optional_number(reader, "softmax_sum_error"));
  TENONNX_ASSIGN_OR_RETURN(tensor.softmax_baseline,
                           optional_number(reader, "softmax_sum_baseline"));
  TENONNX_ASSIGN_OR_RETURN(tensor.unmatched_cosine, optional_number(reader, "unmatched_cosine"));
  if (reader.has("gates")) {
    TENONNX_ASSIGN_OR_RETURN(const JsonReader gates, reader.at("gates"));
    TENONNX_ASSIGN_OR_RETURN(tensor.gates, checks_from_json(gates));
  }
  if (reader.has("slices")) {
    TENONNX_ASSIGN_OR_RETURN(const JsonReader slices, reader.at("slices"));
    TENONNX_ASSIGN_OR_RETURN(const auto items, slices.items());
    for (const JsonReader& item : items) {
      TENONNX_ASSIGN_OR_RETURN(SliceFigures slice, slice_from_json(item));
      tensor.slices.push_back(std::move(slice));
    }
  }
  return tensor;
}

Result<SelectionAgreement> selection_agreement_from_json(const JsonReader& reader) {
  SelectionAgreement out;
  const std::pair<const char*, std::int64_t*> integers[] = {
      {"lanes", &out.lanes},
      {"k", &out.k},
      {"candidates", &out.candidates},
      {"chosen", &out.chosen},
      {"in_common", &out.in_common},
      {"same_position", &out.same_position},
      {"invalid", &out.invalid},
      {"margin_lane", &out.margin_lane},
      {"left_out", &out.left_out},
      {"taken", &out.taken},
      {"chosen_by_candidate", &out.chosen_by_candidate}};
  for (const auto& [key, value] : integers) {
    TENONNX_ASSIGN_OR_RETURN(*value, reader.integer(key));
  }
  TENONNX_ASSIGN_OR_RETURN(out.margin, reader.number("margin"));
  TENONNX_ASSIGN_OR_RETURN(out.disorder, reader.number("disorder"));
  TENONNX_ASSIGN_OR_RETURN(out.box_margin, reader.number("box_margin"));
  return out;
}

}  // namespace tenonnx
