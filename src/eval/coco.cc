// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "eval/coco.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <utility>

#include "base/status.h"

namespace tenonnx {
namespace {

// "/annotations/3: <what>", with the file in front.
Status wrong(const JsonReader& at, std::string_view what) {
  return DataLoss("{}: {}", at.where(), what);
}

Result<CocoBox> read_box(const JsonReader& object) {
  TENONNX_ASSIGN_OR_RETURN(auto reader, object.at("bbox"));
  TENONNX_ASSIGN_OR_RETURN(auto items, reader.items());
  if (items.size() != 4)
    return wrong(reader,
                 fmt::format("expected [x, y, width, height], got {} numbers", items.size()));
  CocoBox box;
  for (std::size_t i = 0; i < 4; ++i) {
    TENONNX_ASSIGN_OR_RETURN(box[i], items[i].number());
    if (!std::isfinite(box[i])) return wrong(items[i], "expected a finite number");
    if (i >= 2 && box[i] < 0)
      return wrong(items[i], fmt::format("{} is negative: {:g}; a box is [x, y, width, height]",
                                         i == 2 ? "width" : "height", box[i]));
  }
  return box;
}

// COCO writes 0 or 1; some tools write true or false.
Result<bool> read_flag(const JsonReader& object, std::string_view key) {
  if (!object.has(key)) return false;
  TENONNX_ASSIGN_OR_RETURN(auto reader, object.at(key));
  if (reader.json().is_boolean()) return reader.boolean();
  TENONNX_ASSIGN_OR_RETURN(auto value, reader.integer());
  if (value != 0 && value != 1) return wrong(reader, fmt::format("expected 0 or 1, got {}", value));
  return value == 1;
}

Result<std::vector<JsonReader>> read_list(const JsonReader& root, std::string_view key) {
  TENONNX_ASSIGN_OR_RETURN(auto reader, root.at(key));
  return reader.items();
}

Status claim_id(const JsonReader& at, std::string_view kind, std::int64_t id,
                std::set<std::int64_t>* ids) {
  if (ids->insert(id).second) return {};
  return wrong(at, fmt::format("{} id {} occurs twice; ids must be unique", kind, id));
}

Result<CocoImage> read_image(const JsonReader& r) {
  CocoImage image;
  TENONNX_ASSIGN_OR_RETURN(image.id, r.integer("id"));
  TENONNX_ASSIGN_OR_RETURN(image.file_name, r.string("file_name"));
  TENONNX_ASSIGN_OR_RETURN(image.width, r.integer_or("width", 0));
  TENONNX_ASSIGN_OR_RETURN(image.height, r.integer_or("height", 0));
  if (image.width < 0 || image.height < 0)
    return wrong(r, fmt::format("size {}x{} is negative", image.width, image.height));
  return image;
}

Result<CocoAnnotation> read_annotation(const JsonReader& r) {
  CocoAnnotation a;
  TENONNX_ASSIGN_OR_RETURN(a.id, r.integer("id"));
  TENONNX_ASSIGN_OR_RETURN(a.image_id, r.integer("image_id"));
  TENONNX_ASSIGN_OR_RETURN(a.category_id, r.integer("category_id"));
  TENONNX_ASSIGN_OR_RETURN(a.bbox, read_box(r));
  TENONNX_ASSIGN_OR_RETURN(a.area, r.number("area"));
  if (!std::isfinite(a.area) || a.area < 0)
    return wrong(r, fmt::format("area {:g} is not a finite number >= 0", a.area));
  TENONNX_ASSIGN_OR_RETURN(a.iscrowd, read_flag(r, "iscrowd"));
  TENONNX_ASSIGN_OR_RETURN(a.ignore, read_flag(r, "ignore"));
  return a;
}

// "Traffic_Light" and "traffic light" are one name.
std::string plain(std::string_view name) {
  std::string out;
  for (char c : name) {
    if (c == '_' || c == '-') c = ' ';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

Json box_json(const CocoBox& box) {
  Json json = Json::array();
  for (double v : box) json.push_back(v);
  return json;
}

}  // namespace

Result<CocoDataset> parse_coco_annotations(const Json& json, std::string_view where) {
  const JsonReader root(json, std::string(where));
  CocoDataset dataset;
  std::set<std::int64_t> image_ids, category_ids, annotation_ids;
  std::set<std::string> file_names;
  TENONNX_ASSIGN_OR_RETURN(auto images, read_list(root, "images"));
  for (const JsonReader& r : images) {
    TENONNX_ASSIGN_OR_RETURN(auto image, read_image(r));
    TENONNX_RETURN_IF_ERROR(claim_id(r, "image", image.id, &image_ids));
    if (!file_names.insert(image.file_name).second)
      return wrong(r, fmt::format("file_name '{}' occurs twice: which labels are its own?",
                                  image.file_name));
    dataset.images.push_back(std::move(image));
  }
  TENONNX_ASSIGN_OR_RETURN(auto categories, read_list(root, "categories"));
  for (const JsonReader& r : categories) {
    CocoCategory category;
    TENONNX_ASSIGN_OR_RETURN(category.id, r.integer("id"));
    TENONNX_ASSIGN_OR_RETURN(category.name, r.string("name"));
    if (category.id < 0) return wrong(r, fmt::format("category id {} is negative", category.id));
    TENONNX_RETURN_IF_ERROR(claim_id(r, "category", category.id, &category_ids));
    dataset.categories.push_back(std::move(category));
  }
  TENONNX_ASSIGN_OR_RETURN(auto annotations, read_list(root, "annotations"));
  dataset.annotations.reserve(annotations.size());
  for (const JsonReader& r : annotations) {
    TENONNX_ASSIGN_OR_RETURN(auto a, read_annotation(r));
    TENONNX_RETURN_IF_ERROR(claim_id(r, "annotation", a.id, &annotation_ids));
    if (!image_ids.contains(a.image_id))
      return wrong(r, fmt::format("image_id {} is not among the images of the file", a.image_id));
    if (!category_ids.contains(a.category_id)) {
      return wrong(r, fmt::format("category_id {} is not among the categories of the file: {}",
                                  a.category_id, fmt::join(category_ids, ", ")));
    }
    dataset.annotations.push_back(a);
  }
  return dataset;
}

Result<CocoDataset> read_coco_annotations(const std::filesystem::path& path) {
  TENONNX_ASSIGN_OR_RETURN(auto json, read_json_file(path));
  return parse_coco_annotations(json, path.string());
}

Json to_json(const CocoDataset& dataset) {
  Json json;
  json["images"] = Json::array();
  for (const CocoImage& i : dataset.images) {
    json["images"].push_back(
        {{"id", i.id}, {"file_name", i.file_name}, {"width", i.width}, {"height", i.height}});
  }
  json["annotations"] = Json::array();
  for (const CocoAnnotation& a : dataset.annotations) {
    Json entry = {{"id", a.id},
                  {"image_id", a.image_id},
                  {"category_id", a.category_id},
                  {"bbox", box_json(a.bbox)},
                  {"area", a.area},
                  {"iscrowd", a.iscrowd ? 1 : 0}};
    if (a.ignore) entry["ignore"] = 1;
    json["annotations"].push_back(std::move(entry));
  }
  json["categories"] = Json::array();
  for (const CocoCategory& c : dataset.categories)
    json["categories"].push_back({{"id", c.id}, {"name", c.name}});
  return json;
}

Result<std::vector<CocoResult>> parse_coco_results(const Json& json, std::string_view where) {
  const JsonReader root(json, std::string(where));
  TENONNX_ASSIGN_OR_RETURN(auto items, root.items());
  std::vector<CocoResult> results;
  results.reserve(items.size());
  for (const JsonReader& r : items) {
    CocoResult result;
    TENONNX_ASSIGN_OR_RETURN(result.image_id, r.integer("image_id"));
    TENONNX_ASSIGN_OR_RETURN(result.category_id, r.integer("category_id"));
    TENONNX_ASSIGN_OR_RETURN(result.bbox, read_box(r));
    TENONNX_ASSIGN_OR_RETURN(result.score, r.number("score"));
    if (!std::isfinite(result.score)) return wrong(r, "score is not a finite number");
    results.push_back(result);
  }
  return results;
}

Result<std::vector<CocoResult>> read_coco_results(const std::filesystem::path& path) {
  TENONNX_ASSIGN_OR_RETURN(auto json, read_json_file(path));
  return parse_coco_results(json, path.string());
}

Json to_json(std::span<const CocoResult> results) {
  Json json = Json::array();
  for (const CocoResult& r : results) {
    json.push_back({{"image_id", r.image_id},
                    {"category_id", r.category_id},
                    {"bbox", box_json(r.bbox)},
                    {"score", r.score}});
  }
  return json;
}

Result<std::vector<std::int64_t>> match_categories(const CocoDataset& dataset,
                                                   std::span<const std::string> class_names) {
  std::map<std::string, std::int64_t> ids;
  std::vector<std::string> names;
  for (const CocoCategory& c : dataset.categories) {
    names.push_back(c.name);
    if (!ids.emplace(plain(c.name), c.id).second)
      return InvalidArgument("two categories of the annotations are called '{}'", c.name);
  }
  std::vector<std::int64_t> matched;
  std::set<std::string> used;
  for (const std::string& name : class_names) {
    const auto found = ids.find(plain(name));
    matched.push_back(found == ids.end() ? -1 : found->second);
    if (found != ids.end() && !used.insert(found->first).second) {
      return InvalidArgument("two classes of the model are called '{}'", name);
    }
  }
  for (const CocoCategory& c : dataset.categories) {
    if (used.contains(plain(c.name))) continue;
    if (class_names.empty())
      return InvalidArgument(
          "the contract names no classes, so the categories of the annotations ({}) cannot be "
          "matched with the model's labels; give it \"classes\", in the order of the labels",
          fmt::join(names, ", "));
    return InvalidArgument(
        "category '{}' of the annotations is no class of the model; categories: {}; classes: {}. "
        "Rename one side, or give the contract the class names of these labels",
        c.name, fmt::join(names, ", "), fmt::join(class_names, ", "));
  }
  return matched;
}

std::vector<CocoResult> to_coco_results(std::int64_t image_id,
                                        std::span<const Detection> detections,
                                        std::span<const std::int64_t> category_ids) {
  std::vector<CocoResult> results;
  for (const Detection& d : detections) {
    if (d.label < 0 || d.label >= static_cast<std::int64_t>(category_ids.size())) continue;
    const std::int64_t category = category_ids[static_cast<std::size_t>(d.label)];
    if (category < 0) continue;
    const double x = d.box.x0, y = d.box.y0;
    const CocoBox box = {x, y, std::max(0.0, d.box.x1 - x), std::max(0.0, d.box.y1 - y)};
    const bool finite = std::isfinite(d.box.x1) && std::isfinite(d.box.y1) && std::isfinite(x) &&
                        std::isfinite(y) && std::isfinite(d.score);
    if (finite) results.push_back({image_id, category, box, d.score});
  }
  return results;
}

}  // namespace tenonnx
