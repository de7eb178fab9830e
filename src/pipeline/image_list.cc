// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "pipeline/image_list.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "eval/coco.h"
#include "pipeline/image_file.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;

// What annotations.json of a folder says: ids by file name.
struct Labels {
  std::map<std::string, std::int64_t> ids;
  std::int64_t largest = 0;
};

Result<std::optional<CocoDataset>> labels_of(const fs::path& folder) {
  const fs::path file = folder / "annotations.json";
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return std::optional<CocoDataset>();
  TENONNX_ASSIGN_OR_RETURN(CocoDataset dataset, read_coco_annotations(file));
  return std::optional<CocoDataset>(std::move(dataset));
}

std::vector<std::int64_t> labels_as_categories(std::size_t count) {
  std::vector<std::int64_t> categories(count);
  std::iota(categories.begin(), categories.end(), 0);
  return categories;
}

Result<std::vector<fs::path>> expand(const std::vector<std::string>& arguments) {
  std::vector<fs::path> files;
  for (const std::string& argument : arguments) {
    std::error_code error;
    const fs::file_status status = fs::status(argument, error);
    if (fs::is_directory(status)) {
      TENONNX_ASSIGN_OR_RETURN(auto found, list_images(argument));
      files.insert(files.end(), found.begin(), found.end());
    } else if (fs::exists(status)) {
      files.emplace_back(argument);
    } else {
      return NotFound("'{}' is neither a file nor a folder{}", argument,
                      argument == "-" ? ": '-' (a stream of frames) stands alone" : "");
    }
  }
  if (files.empty()) return InvalidArgument("no images were named");
  return files;
}

}  // namespace

Result<std::vector<fs::path>> list_images(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored) && is_image_name(at->path())) files.push_back(at->path());
  }
  if (error) return Io("cannot list the folder '{}': {}", folder.string(), error.message());
  if (files.empty())
    return NotFound("the folder '{}' holds no image (.jpg, .jpeg, .png, .ppm, .pgm)",
                    folder.string());
  std::sort(files.begin(), files.end());
  return files;
}

Result<ImageList> number_images(const std::vector<std::string>& arguments,
                                const std::vector<std::string>& classes) {
  TENONNX_ASSIGN_OR_RETURN(const auto files, expand(arguments));
  ImageList list;
  list.categories = labels_as_categories(classes.size());
  list.ids_from = "1 to N";
  std::map<fs::path, Labels> folders;
  std::map<std::int64_t, fs::path> taken;
  std::int64_t largest = 0;
  for (const fs::path& file : files) {
    const fs::path folder = file.parent_path();
    if (folders.contains(folder)) continue;
    TENONNX_ASSIGN_OR_RETURN(const auto dataset, labels_of(folder.empty() ? "." : folder));
    Labels& labels = folders[folder];
    if (!dataset) continue;
    list.ids_from = "annotations.json";
    for (const CocoImage& image : dataset->images) {
      labels.ids[fs::path(image.file_name).filename().string()] = image.id;
      largest = std::max(largest, image.id);
    }
    const auto categories = match_categories(*dataset, classes);
    if (categories.ok())
      list.categories = *categories;
    else
      log_warning("category ids are the labels: {}", categories.status().message());
  }
  for (const fs::path& file : files) {
    const auto& ids = folders[file.parent_path()].ids;
    const auto known = ids.find(file.filename().string());
    const std::int64_t id = known != ids.end() ? known->second : ++largest;
    const auto [other, is_new] = taken.try_emplace(id, file);
    // The same image named twice is no contradiction.
    if (!is_new && other->second != file)
      return InvalidArgument("image id {} stands for both '{}' and '{}': run them apart", id,
                             other->second.string(), file.string());
    list.images.push_back({file, id});
  }
  return list;
}

}  // namespace tenonnx
