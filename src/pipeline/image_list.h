// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The images that arguments name, and the ids that labels beside them give.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tenonnx/base.h"

namespace tenonnx {

// Images of a folder by name (not of folders below it). NotFound where it holds none.
Result<std::vector<std::filesystem::path>> list_images(const std::filesystem::path& folder);

struct NumberedImage {
  std::filesystem::path path;
  std::int64_t id = 0;
};

struct ImageList {
  std::vector<NumberedImage> images;
  std::vector<std::int64_t> categories;  // of each label
  std::string ids_from;                  // "annotations.json" or "1 to N"
};

// Files and folders in the order given. A file that is named is taken whatever its name ends in;
// one that is not there is NotFound. `classes`: the model's, for the category ids: where no
// annotations.json is beside the images, or its categories are not the model's classes (a warning
// then), a category is the label itself. InvalidArgument where two folders' annotations give
// one id to two images.
Result<ImageList> number_images(const std::vector<std::string>& arguments,
                                const std::vector<std::string>& classes);

}  // namespace tenonnx
