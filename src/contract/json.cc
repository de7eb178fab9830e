// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "base/status.h"
#include "contract/contract.h"
#include "contract/range.h"

namespace tenonnx {
namespace {

// Name of each value of an enum in the file. The first column is what is written.
template <typename E>
using Names = std::array<std::pair<std::string_view, E>, 2>;

constexpr Names<ColorOrder> kColors = {{{"RGB", ColorOrder::kRgb}, {"BGR", ColorOrder::kBgr}}};
constexpr Names<Layout> kLayouts = {{{"NCHW", Layout::kNchw}, {"NHWC", Layout::kNhwc}}};
constexpr Names<ResizeKind> kResizes = {{{"pillow_bilinear", ResizeKind::kPillowBilinear},
                                         {"opencv_linear", ResizeKind::kOpencvLinear}}};
constexpr Names<ResizeFit> kFits = {
    {{"stretch", ResizeFit::kStretch}, {"letterbox", ResizeFit::kLetterbox}}};
constexpr Names<NormalizedBy> kOwners = {
    {{"pipeline", NormalizedBy::kPipeline}, {"model", NormalizedBy::kModel}}};
constexpr Names<SizeOrder> kOrders = {
    {{"width_height", SizeOrder::kWidthHeight}, {"height_width", SizeOrder::kHeightWidth}}};
constexpr Names<OutputKind> kKinds = {
    {{"detections", OutputKind::kDetections}, {"raw", OutputKind::kRaw}}};

template <typename E>
std::string_view name_of(const Names<E>& names, E value) {
  for (const auto& [name, candidate] : names)
    if (candidate == value) return name;
  return {};
}

// Reads `key` where it stands; leaves `value` as it is where it does not.
template <typename E>
Status read_enum(const JsonReader& reader, std::string_view key, const Names<E>& names, E& value) {
  if (!reader.has(key)) return {};
  TENONNX_ASSIGN_OR_RETURN(const std::string text, reader.string(key));
  std::string allowed;
  for (const auto& [name, candidate] : names) {
    if (name == text) {
      value = candidate;
      return {};
    }
    allowed += fmt::format("{}\"{}\"", allowed.empty() ? "" : ", ", name);
  }
  return DataLoss("{}/{}: \"{}\" is not one of {}", reader.where(), key, text, allowed);
}

Status read_dtype(const JsonReader& reader, std::string_view key, DType& value) {
  if (!reader.has(key)) return {};
  TENONNX_ASSIGN_OR_RETURN(const std::string text, reader.string(key));
  const Result<DType> dtype = dtype_from_string(text);
  if (!dtype.ok()) return DataLoss("{}/{}: {}", reader.where(), key, dtype.status().message());
  value = *dtype;
  return {};
}

Status read_name(const JsonReader& reader, std::string_view key, std::string& value) {
  if (!reader.has(key)) return {};
  TENONNX_ASSIGN_OR_RETURN(value, reader.string(key));
  if (value.empty()) return DataLoss("{}/{}: the name is empty", reader.where(), key);
  return {};
}

// Dimensions above 0; -1 (any) only where `dynamic` allows it.
Status read_shape(const JsonReader& reader, std::string_view key, bool dynamic, Shape& shape) {
  TENONNX_ASSIGN_OR_RETURN(const JsonReader array, reader.at(key));
  TENONNX_ASSIGN_OR_RETURN(const auto items, array.items());
  shape.clear();
  for (const JsonReader& item : items) {
    TENONNX_ASSIGN_OR_RETURN(const std::int64_t dimension, item.integer());
    if (dimension < 1 && !(dynamic && dimension == -1))
      return DataLoss("{}: a dimension is at least 1{}, got {}", item.where(),
                      dynamic ? ", or -1 for any" : "", dimension);
    shape.push_back(dimension);
  }
  if (!dynamic && element_count(shape) < 0)
    return DataLoss("{}: the shape {} is too large", array.where(), to_string(shape));
  return {};
}

template <std::size_t N>
Status read_numbers(const JsonReader& reader, std::string_view key, std::array<double, N>& values) {
  if (!reader.has(key)) return {};
  TENONNX_ASSIGN_OR_RETURN(const JsonReader array, reader.at(key));
  TENONNX_ASSIGN_OR_RETURN(const auto items, array.items());
  if (items.size() != N)
    return DataLoss("{}: expected {} numbers, got {}", array.where(), N, items.size());
  for (std::size_t i = 0; i < N; ++i) {
    TENONNX_ASSIGN_OR_RETURN(values[i], items[i].number());
    if (!std::isfinite(values[i]))
      return DataLoss("{}: expected a finite number", items[i].where());
  }
  return {};
}

Status read_strings(const JsonReader& reader, std::string_view key,
                    std::vector<std::string>& values) {
  if (!reader.has(key)) return {};
  TENONNX_ASSIGN_OR_RETURN(const JsonReader array, reader.at(key));
  TENONNX_ASSIGN_OR_RETURN(const auto items, array.items());
  values.clear();
  for (const JsonReader& item : items) {
    TENONNX_ASSIGN_OR_RETURN(std::string value, item.string());
    if (value.empty()) return DataLoss("{}: the name is empty", item.where());
    values.push_back(std::move(value));
  }
  return {};
}

Status check_image_shape(const std::string& where, const ImageInput& image) {
  const std::size_t channel = image.layout == Layout::kNchw ? 1 : 3;
  const std::string_view layout = name_of(kLayouts, image.layout);
  if (image.shape.size() != 4 || image.shape[0] != 1 || image.shape[channel] != 3) {
    const std::size_t other = image.layout == Layout::kNchw ? 3 : 1;
    const bool swapped = image.shape.size() == 4 && image.shape[other] == 3;
    return DataLoss("{}/shape: {} is not {} for layout {}{}", where, to_string(image.shape),
                    image.layout == Layout::kNchw ? "[1,3,height,width]" : "[1,height,width,3]",
                    layout,
                    swapped ? fmt::format("; it looks like {}: set \"layout\": \"{}\"",
                                          image.layout == Layout::kNchw ? "NHWC" : "NCHW",
                                          image.layout == Layout::kNchw ? "NHWC" : "NCHW")
                            : "");
  }
  return {};
}

// One owner of normalisation: scale, mean, std, owner and range must tell one story.
Status check_normalization(const std::string& where, const ImageInput& image, bool range_given) {
  if (image.dtype != DType::kFloat32 && image.dtype != DType::kFloat16 &&
      image.dtype != DType::kUInt8)
    return DataLoss("{}/dtype: an image is float32, float16 or uint8, got {}", where,
                    to_string(image.dtype));
  if (image.scale == 0 || !std::isfinite(image.scale))
    return DataLoss("{}/scale: expected a finite number other than 0", where);
  for (const double std : image.std)
    if (std <= 0) return DataLoss("{}/std: expected numbers above 0, got {}", where, std);
  if (image.dtype == DType::kUInt8 &&
      (image.scale != 1.0 || image.normalized_by != NormalizedBy::kModel))
    return DataLoss(
        "{}: an uint8 image holds the pixels as they are: set \"scale\": 1 and \"normalized_by\": "
        "\"model\", or another dtype",
        where);
  if (!range_given) return {};
  const auto implied = implied_range(image);
  // The range is written by hand with few digits (-2.118): 1e-3 of its width.
  const double tolerance = 1e-3 * (implied[1] - implied[0]);
  if (std::abs(image.range[0] - implied[0]) > tolerance ||
      std::abs(image.range[1] - implied[1]) > tolerance)
    return DataLoss(
        "{}/range: [{:.6g}, {:.6g}] contradicts scale, mean and std as applied by the {}, which "
        "give [{:.6g}, {:.6g}]. Exactly one of pipeline and model normalizes: see "
        "\"normalized_by\"",
        where, image.range[0], image.range[1],
        image.normalized_by == NormalizedBy::kPipeline ? "pipeline" : "model (scale alone)",
        implied[0], implied[1]);
  return {};
}

Status read_image(const JsonReader& reader, ImageInput& image) {
  TENONNX_RETURN_IF_ERROR(
      reader.only({"name", "dtype", "shape", "layout", "color", "resize", "fit", "letterbox_fill",
                   "normalized_by", "scale", "mean", "std", "range"}));
  TENONNX_RETURN_IF_ERROR(read_name(reader, "name", image.name));
  TENONNX_RETURN_IF_ERROR(read_dtype(reader, "dtype", image.dtype));
  TENONNX_RETURN_IF_ERROR(read_enum(reader, "layout", kLayouts, image.layout));
  TENONNX_RETURN_IF_ERROR(read_shape(reader, "shape", false, image.shape));
  TENONNX_RETURN_IF_ERROR(check_image_shape(reader.where(), image));
  TENONNX_RETURN_IF_ERROR(read_enum(reader, "color", kColors, image.color));
  TENONNX_RETURN_IF_ERROR(read_enum(reader, "resize", kResizes, image.resize));
  TENONNX_RETURN_IF_ERROR(read_enum(reader, "fit", kFits, image.fit));
  std::array<double, 3> fill = {114, 114, 114};
  TENONNX_RETURN_IF_ERROR(read_numbers(reader, "letterbox_fill", fill));
  for (std::size_t c = 0; c < 3; ++c) {
    if (fill[c] < 0 || fill[c] > 255 || fill[c] != std::floor(fill[c]))
      return DataLoss("{}/letterbox_fill: expected integers from 0 to 255, got {}", reader.where(),
                      fill[c]);
    image.letterbox_fill[c] = static_cast<std::uint8_t>(fill[c]);
  }
  TENONNX_RETURN_IF_ERROR(read_enum(reader, "normalized_by", kOwners, image.normalized_by));
  TENONNX_ASSIGN_OR_RETURN(image.scale, reader.number_or("scale", image.scale));
  TENONNX_RETURN_IF_ERROR(read_numbers(reader, "mean", image.mean));
  TENONNX_RETURN_IF_ERROR(read_numbers(reader, "std", image.std));
  TENONNX_RETURN_IF_ERROR(read_numbers(reader, "range", image.range));
  TENONNX_RETURN_IF_ERROR(check_normalization(reader.where(), image, reader.has("range")));
  if (!reader.has("range")) image.range = implied_range(image);
  return {};
}

Status read_size(const JsonReader& reader, SizeInput& size) {
  TENONNX_RETURN_IF_ERROR(reader.only({"name", "dtype", "order"}));
  TENONNX_RETURN_IF_ERROR(read_name(reader, "name", size.name));
  TENONNX_RETURN_IF_ERROR(read_dtype(reader, "dtype", size.dtype));
  if (size.dtype != DType::kInt64 && size.dtype != DType::kInt32 && size.dtype != DType::kFloat32)
    return DataLoss("{}/dtype: sizes are int64, int32 or float32, got {}", reader.where(),
                    to_string(size.dtype));
  return read_enum(reader, "order", kOrders, size.order);
}

Status read_outputs(const JsonReader& reader, Outputs& outputs) {
  TENONNX_RETURN_IF_ERROR(reader.only(
      {"kind", "labels", "boxes", "scores", "logits", "pred_boxes", "top_k", "tensors"}));
  TENONNX_RETURN_IF_ERROR(read_enum(reader, "kind", kKinds, outputs.kind));
  const bool raw = outputs.kind == OutputKind::kRaw;
  for (const std::string_view key : {"labels", "boxes", "scores"})
    if (raw && reader.has(key))
      return DataLoss("{}/{}: belongs to kind \"detections\", but the kind is \"raw\"",
                      reader.where(), key);
  for (const std::string_view key : {"logits", "pred_boxes", "top_k"})
    if (!raw && reader.has(key))
      return DataLoss("{}/{}: belongs to kind \"raw\", but the kind is \"detections\"",
                      reader.where(), key);
  TENONNX_RETURN_IF_ERROR(read_name(reader, "labels", outputs.labels));
  TENONNX_RETURN_IF_ERROR(read_name(reader, "boxes", outputs.boxes));
  TENONNX_RETURN_IF_ERROR(read_name(reader, "scores", outputs.scores));
  TENONNX_RETURN_IF_ERROR(read_name(reader, "logits", outputs.logits));
  TENONNX_RETURN_IF_ERROR(read_name(reader, "pred_boxes", outputs.pred_boxes));
  TENONNX_ASSIGN_OR_RETURN(const std::int64_t top_k, reader.integer_or("top_k", outputs.top_k));
  if (top_k < 1 || top_k > 1'000'000)
    return DataLoss("{}/top_k: expected 1 to 1000000, got {}", reader.where(), top_k);
  outputs.top_k = static_cast<int>(top_k);
  if (!reader.has("tensors")) return {};
  TENONNX_ASSIGN_OR_RETURN(const JsonReader tensors, reader.at("tensors"));
  TENONNX_ASSIGN_OR_RETURN(const auto items, tensors.items());
  for (const JsonReader& item : items) {
    TENONNX_RETURN_IF_ERROR(item.only({"name", "dtype", "shape"}));
    TensorInfo info;
    TENONNX_ASSIGN_OR_RETURN(info.name, item.string("name"));
    TENONNX_ASSIGN_OR_RETURN(const std::string dtype, item.string("dtype"));
    TENONNX_RETURN_IF_ERROR(read_dtype(item, "dtype", info.dtype));
    TENONNX_RETURN_IF_ERROR(read_shape(item, "shape", true, info.shape));
    outputs.tensors.push_back(std::move(info));
  }
  return {};
}

}  // namespace

Result<Contract> contract_from_json(const JsonReader& reader) {
  TENONNX_RETURN_IF_ERROR(
      reader.only({"schema_version", "image", "size", "outputs", "classes", "cut"}));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader schema, reader.at("schema_version"));
  TENONNX_ASSIGN_OR_RETURN(const std::int64_t version, schema.integer());
  if (version != kContractSchemaVersion)
    return Unsupported("{}: {} belongs to another version of tenonnx; this one reads {}",
                       schema.where(), version, kContractSchemaVersion);
  Contract contract;
  TENONNX_ASSIGN_OR_RETURN(const JsonReader image, reader.at("image"));
  TENONNX_RETURN_IF_ERROR(read_image(image, contract.image));
  if (reader.has("size") && !reader.json()["size"].is_null()) {
    TENONNX_ASSIGN_OR_RETURN(const JsonReader size, reader.at("size"));
    TENONNX_RETURN_IF_ERROR(read_size(size, contract.size.emplace()));
  }
  TENONNX_ASSIGN_OR_RETURN(const JsonReader outputs, reader.at("outputs"));
  TENONNX_RETURN_IF_ERROR(read_outputs(outputs, contract.outputs));
  TENONNX_RETURN_IF_ERROR(read_strings(reader, "classes", contract.classes));
  TENONNX_RETURN_IF_ERROR(read_strings(reader, "cut", contract.cut));
  return contract;
}

Json to_json(const Contract& contract) {
  const ImageInput& image = contract.image;
  Json json = {{"schema_version", kContractSchemaVersion}};
  json["image"] = {{"name", image.name},
                   {"dtype", to_string(image.dtype)},
                   {"shape", image.shape},
                   {"layout", name_of(kLayouts, image.layout)},
                   {"color", name_of(kColors, image.color)},
                   {"resize", name_of(kResizes, image.resize)},
                   {"fit", name_of(kFits, image.fit)}};
  if (image.fit == ResizeFit::kLetterbox) json["image"]["letterbox_fill"] = image.letterbox_fill;
  json["image"]["normalized_by"] = name_of(kOwners, image.normalized_by);
  json["image"]["scale"] = image.scale;
  json["image"]["mean"] = image.mean;
  json["image"]["std"] = image.std;
  json["image"]["range"] = image.range;
  if (contract.size)
    json["size"] = {{"name", contract.size->name},
                    {"dtype", to_string(contract.size->dtype)},
                    {"order", name_of(kOrders, contract.size->order)}};
  const Outputs& outputs = contract.outputs;
  Json& out = json["outputs"] = {{"kind", name_of(kKinds, outputs.kind)}};
  if (outputs.kind == OutputKind::kDetections) {
    out["labels"] = outputs.labels;
    out["boxes"] = outputs.boxes;
    out["scores"] = outputs.scores;
  } else {
    out["logits"] = outputs.logits;
    out["pred_boxes"] = outputs.pred_boxes;
    out["top_k"] = outputs.top_k;
  }
  for (const TensorInfo& info : outputs.tensors)
    out["tensors"].push_back(
        {{"name", info.name}, {"dtype", to_string(info.dtype)}, {"shape", info.shape}});
  json["classes"] = contract.classes;
  if (!contract.cut.empty()) json["cut"] = contract.cut;
  return json;
}

Result<Contract> read_contract(const std::filesystem::path& path) {
  TENONNX_ASSIGN_OR_RETURN(const Json json, read_json_file(path));
  return contract_from_json(JsonReader(json, path.string()));
}

std::optional<std::filesystem::path> find_contract(const std::filesystem::path& model_path) {
  std::error_code ignored;
  std::filesystem::path own = model_path;
  own.replace_extension();
  own += ".contract.json";
  for (const auto& path : {own, model_path.parent_path() / "contract.json"})
    if (std::filesystem::is_regular_file(path, ignored)) return path;
  return std::nullopt;
}

}  // namespace tenonnx
