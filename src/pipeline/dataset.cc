// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "pipeline/dataset.h"

#include <charconv>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "base/status.h"
#include "eval/shapes.h"
#include "pipeline/image_file.h"

namespace tenonnx {
namespace {

// Only what this wrote is replaced: a person's own images have other names.
Status is_shapes_dataset(const std::filesystem::path& directory) {
  return holds_only(directory, "a dataset of shapes", [](const std::string& name) {
    if (name == "annotations.json") return true;
    constexpr std::string_view kPrefix = "shapes_";
    std::uint64_t seed = 0;
    if (!name.starts_with(kPrefix)) return false;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), seed);
    return name == shapes_file_name(seed);
  });
}

}  // namespace

Status write_shapes_dataset(const ShapesOptions& options) {
  constexpr std::int64_t kMost = 1'000'000;
  if (options.count < 1 || options.count > kMost)
    return InvalidArgument("the number of images must be 1 to {}, got {}", kMost, options.count);
  if (options.seed > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() - kMost))
    return InvalidArgument("the seed {} is too large: image ids are 64-bit integers", options.seed);
  if (options.out.empty()) return InvalidArgument("no output directory was named");
  TENONNX_ASSIGN_OR_RETURN(StagedDirectory staged,
                           StagedDirectory::create(options.out, options.force, is_shapes_dataset));
  std::vector<std::uint64_t> seeds;
  for (std::int64_t i = 0; i < options.count; ++i) {
    const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(i);
    seeds.push_back(seed);
    ShapesImage shapes = make_shapes_image(seed);
    Image image(kShapesSize, kShapesSize, 3);
    image.pixels = std::move(shapes.rgb);
    TENONNX_RETURN_IF_ERROR(write_png(staged.path() / shapes_file_name(seed), image));
    if (options.progress) options.progress("writing images", i + 1, options.count);
  }
  TENONNX_ASSIGN_OR_RETURN(const CocoDataset annotations, shapes_annotations(seeds));
  TENONNX_RETURN_IF_ERROR(
      write_json_file(staged.path() / "annotations.json", to_json(annotations)));
  return staged.publish();
}

}  // namespace tenonnx
