// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A directory of recorded tensors, as docs/reference/executors.md describes it, and how an array of
// it becomes the model's tensor.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/npy.h"
#include "tenonnx/base.h"

namespace tenonnx {

// How one tensor of the model was recorded: an entry of names.json. Applied in this order.
struct RecordedName {
  std::string key;              // of the array in the .npz
  std::optional<double> scale;  // quantised: (array - zero_point) * scale, as float32
  double zero_point = 0;
  std::vector<std::int64_t> transpose;  // axes of the array in the model's order; or empty
  bool reshape = false;                 // the model's shape, where the count of elements is equal
  bool convert = false;                 // to the model's dtype; integers must keep their values
};

// One input of the model and what was recorded of it.
struct RecordedCase {
  std::string name;               // of the file, without .npz
  NpzFile tensors;                // outputs; inputs may be among them
  std::optional<NpzFile> inputs;  // NAME.inputs.npz; of outputs.npz, inputs.npz
};

struct Recording {
  std::filesystem::path path;                              // as it was given
  std::filesystem::path names_file;                        // names.json, whether it exists or not
  std::string source;                                      // what names.json says; or ""
  std::map<std::string, RecordedName, std::less<>> names;  // by the model's names
  std::vector<RecordedCase> cases;                         // by rising name
  std::string fingerprint;                                 // SHA-256 over names.json and checksums

  // nullptr where names.json has no entry.
  const RecordedName* entry(std::string_view tensor) const;
  // Of the array: from names.json, else the tensor's own name.
  std::string_view key_of(std::string_view tensor) const;
  // "a, b, c and 17 more"
  std::string case_list() const;
};

// A directory, or one .npz of it. NotFound where there is no .npz; DataLoss for a damaged file, a
// names.json that is not one, or that names an array which no case holds.
Result<Recording> read_recording(const std::filesystem::path& path);

// The model's tensor `info` of a recorded array. InvalidArgument, got against allowed, with the
// line for names.json that would help. `where`: "out.npz: 'boxes'". Dtype kUndefined and unknown
// dimensions of `info` take anything.
Result<Tensor> adapt(const Tensor& array, const RecordedName* entry, const TensorInfo& info,
                     const std::string& where);

// Whether a tensor of this shape can be `info`: a dimension of -1 takes any size.
bool shape_fits(const Shape& shape, const TensorInfo& info);

}  // namespace tenonnx
