// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What both sides of `compare` are fed with: tensors from .npz or .npy files, images after the
// contract's preprocessing, or random values. One at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "flow/inputs.h"
#include "tenonnx/base.h"

namespace tenonnx {

// What becomes of Inf and NaN in given tensors: an error, or a note. Only a proof whose verdict is
// INCONCLUSIVE where nothing is finite may note them.
enum class NonFinite { kRefuse, kNote };

class TensorInputs {
 public:
  // An .npz, which is one input, or a folder: each .npz in it is one, by rising name; a folder
  // without .npz but with .npy files is one, whose tensors the files are named after. Arrays that
  // are no inputs of the model are left alone. Checked here, before anything long: NotFound for a
  // path or a folder without files, InvalidArgument for a missing input, for a wrong dtype or
  // shape, got against allowed, and for Inf and NaN (flow/finite_inputs.h).
  static Result<TensorInputs> from_files(const std::filesystem::path& path,
                                         std::span<const TensorInfo> model_inputs,
                                         NonFinite non_finite = NonFinite::kRefuse);
  static TensorInputs from_source(InputSource source);

  std::size_t size() const;
  bool is_random() const { return source_ && source_->is_random(); }
  // "20 images of 'held-out'", "3 .npz files of 'inputs'"
  std::string description() const;
  Result<ReferenceInput> load(std::size_t index) const;
  // The images; none for tensors.
  const InputSource* images() const { return source_ && !is_random() ? &*source_ : nullptr; }
  // With NonFinite::kNote: which tensors hold Inf or NaN.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  Result<TensorMap> read(std::size_t index) const;

  std::optional<InputSource> source_;
  std::filesystem::path path_;
  std::vector<std::filesystem::path> files_;
  bool npy_ = false;  // files_ are the tensors of one input
  std::vector<TensorInfo> infos_;
  std::vector<std::string> notes_;
};

}  // namespace tenonnx
