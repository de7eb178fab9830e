// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// An executor that divides whatever it loads at given tensors and runs the two parts one after the
// other on another executor: the way a package runs. Tensors at the cut are then real outputs of a
// compiled part, not outputs that were added to look inside.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ort/executor.h"

namespace tenonnx {

class PartsExecutor : public Executor {
 public:
  // `inner` outlives it. `cut`: exact names of tensors of the models that are loaded; those of a
  // model that nothing behind the cut is asked of are outputs of its first part.
  PartsExecutor(const Executor& inner, std::vector<std::string> cut)
      : inner_(inner), cut_(std::move(cut)) {}

  const std::string& address() const override { return inner_.address(); }
  Result<std::unique_ptr<LoadedGraph>> load(const Model& model,
                                            const LoadOptions& options) const override;
  std::vector<std::pair<std::string, std::string>> versions() const override {
    return inner_.versions();
  }

 private:
  const Executor& inner_;
  const std::vector<std::string> cut_;
};

}  // namespace tenonnx
