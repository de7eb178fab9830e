// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// One attempt of a deploy: the segments of one cut, written, compiled where they ship so, and
// proved.
#pragma once

#include <filesystem>

#include "device/device.h"
#include "flow/cut_attempts.h"
#include "flow/deploy.h"
#include "flow/kept_segments.h"
#include "model/model.h"

namespace tenonnx {

// What every attempt takes.
struct DeployParties {
  const DeployOptions& options;
  const Device& device;
  const Model& source;
  const Model& prepared;
  const Model* compiled;  // what a compiler gets instead; nullptr: the same
  const InputSource& inputs;
  const std::vector<Check>& checks;  // of what makes `compiled` of `prepared`
  const std::filesystem::path& directory;
  const std::filesystem::path& plain;  // for the same segments without fused operators
  KeptSegments* kept;                  // nullptr without DeployOptions::keep_on_cpu
};

// Writes the segments of one cut and proves them. Those of an earlier attempt go.
Status try_cut(const DeployParties& parties, const CutAttempt& attempt, DeployResult& result);

}  // namespace tenonnx
