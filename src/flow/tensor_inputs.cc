// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/tensor_inputs.h"

#include <algorithm>
#include <system_error>

#include "base/npy.h"
#include "base/status.h"
#include "base/wording.h"
#include "flow/finite_inputs.h"
#include "ort/inputs.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

Result<std::vector<fs::path>> files_with(const fs::path& folder, std::string_view extension) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == extension && it->is_regular_file(error))
      files.push_back(it->path());
  if (error) return Io("cannot read '{}': {}", folder.string(), error.message());
  std::sort(files.begin(), files.end());
  return files;
}

std::string list_of(const TensorMap& tensors) {
  std::string out;
  for (const auto& [name, tensor] : tensors)
    out += fmt::format("{}'{}' {} {}", out.empty() ? "" : ", ", name, to_string(tensor.dtype()),
                       to_string(tensor.shape()));
  return out.empty() ? "nothing" : out;
}

// The model's inputs among `arrays`, checked.
Result<TensorMap> choose(std::span<const TensorInfo> infos, const TensorMap& arrays,
                         const std::string& where) {
  TensorMap out;
  std::vector<Tensor> ordered;
  for (const TensorInfo& info : infos) {
    const auto found = arrays.find(info.name);
    if (found == arrays.end())
      return InvalidArgument(
          "{}: there is no array for the input '{}' of the model (it holds {}); every input must "
          "be "
          "given under its name",
          where, to_string(info), list_of(arrays));
    out.emplace(info.name, found->second);
    ordered.push_back(found->second);
  }
  TENONNX_RETURN_IF_ERROR(check_inputs(infos, ordered).at(where));
  return out;
}

}  // namespace

Result<TensorInputs> TensorInputs::from_files(const fs::path& path,
                                              std::span<const TensorInfo> model_inputs,
                                              NonFinite non_finite) {
  TensorInputs inputs;
  inputs.path_ = path;
  inputs.infos_.assign(model_inputs.begin(), model_inputs.end());
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return NotFound("there is no '{}' to read inputs from", path.string());
  if (!fs::is_directory(status)) {
    if (path.extension() != ".npz")
      return InvalidArgument(
          "'{}' is neither an .npz nor a folder of .npz or .npy files; images are given with "
          "--images",
          path.string());
    inputs.files_.push_back(path);
  } else {
    TENONNX_ASSIGN_OR_RETURN(inputs.files_, files_with(path, ".npz"));
    if (inputs.files_.empty()) {
      TENONNX_ASSIGN_OR_RETURN(inputs.files_, files_with(path, ".npy"));
      inputs.npy_ = true;
    }
    if (inputs.files_.empty())
      return NotFound("folder '{}' has no .npz and no .npy; images are given with --images",
                      path.string());
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TENONNX_ASSIGN_OR_RETURN(const TensorMap tensors, inputs.read(i));
    for (const auto& [name, tensor] : tensors) {
      const fs::path file = inputs.npy_ ? path / (name + ".npy") : inputs.files_[i];
      if (non_finite == NonFinite::kRefuse)
        TENONNX_RETURN_IF_ERROR(check_finite(file, name, tensor));
      else if (const std::string found = not_finite(name, tensor); !found.empty())
        inputs.notes_.push_back(fmt::format("{}: {}", file.filename().string(), found));
    }
  }
  return inputs;
}

TensorInputs TensorInputs::from_source(InputSource source) {
  TensorInputs inputs;
  inputs.source_ = std::move(source);
  return inputs;
}

std::size_t TensorInputs::size() const {
  if (source_) return source_->size();
  return npy_ ? 1 : files_.size();
}

std::string TensorInputs::description() const {
  if (source_) return source_->description();
  if (npy_) return fmt::format("1 input of .npy files in '{}'", path_.filename().string());
  if (files_.size() == 1) return fmt::format("'{}'", files_.front().filename().string());
  return fmt::format("{} of '{}'", counted(files_.size(), ".npz file"), path_.filename().string());
}

Result<TensorMap> TensorInputs::read(std::size_t index) const {
  TensorMap arrays;
  std::string where = npy_ ? path_.string() : files_[index].string();
  if (npy_) {
    for (const fs::path& file : files_) {
      TENONNX_ASSIGN_OR_RETURN(arrays[file.stem().string()], read_npy(file));
    }
  } else {
    TENONNX_ASSIGN_OR_RETURN(const NpzFile file, NpzFile::open(files_[index]));
    for (const TensorInfo& info : infos_) {
      if (!file.has(info.name)) continue;
      TENONNX_ASSIGN_OR_RETURN(arrays[info.name], file.read(info.name));
    }
    if (arrays.size() < infos_.size()) {  // for the message: what is there instead
      TENONNX_ASSIGN_OR_RETURN(arrays, read_npz(files_[index]));
    }
  }
  return choose(infos_, arrays, where);
}

Result<ReferenceInput> TensorInputs::load(std::size_t index) const {
  if (source_) return source_->load(index);
  if (index >= size()) return InvalidArgument("there is no input {} of {}", index, size());
  ReferenceInput input;
  input.name = npy_ ? path_.filename().string() : files_[index].filename().string();
  TENONNX_ASSIGN_OR_RETURN(input.tensors, read(index));
  input.sha256 = input_sha256(input.tensors);
  return input;
}

}  // namespace tenonnx
