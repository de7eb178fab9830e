// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Figures of the windows of a comparison on disk, so that a run that was ended can go on: one
// directory a comparison, named by a hash of everything that its figures depend on, with one file a
// window. A file is written whole or not at all, and carries the SHA-256 of what is in it: a file
// that lost its end in a power cut, or was changed, is not believed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "flow/compare_windows.h"

namespace tenonnx {

class CompareJournal {
 public:
  // $XDG_CACHE_HOME/tenonnx/compare, else ~/.cache/tenonnx/compare; empty where there is no home.
  static std::filesystem::path default_directory();

  // `key`: the text that the figures depend on. Without `resume` what an equal run left is removed.
  // An empty directory gives a journal that keeps nothing. Io where it cannot be made.
  static Result<CompareJournal> open(const std::filesystem::path& directory, std::string_view key,
                                     bool resume);

  // nullopt for a window that is not there, not readable, not what was written, or another window:
  // it is computed again.
  std::optional<WindowFigures> recall(std::size_t begin) const;
  Status remember(std::size_t begin, const WindowFigures& figures) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace tenonnx
