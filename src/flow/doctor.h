// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Is this machine or board fit? The facts that every result depends on, and a check of each thing
// that a deployment needs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "tenonnx/base.h"

namespace tenonnx {

struct DoctorCheck {
  std::string name;  // "ONNX Runtime", "device file htp-v73"
  bool ok = false;
  std::string detail;  // what was found, or what is wrong and what to do
};

struct DoctorReport {
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<DoctorCheck> checks;
  bool fit() const;
};

// Never fails itself: what cannot be found out is a check that is not ok.
DoctorReport doctor();

Json to_json(const DoctorReport& report);
std::string to_text(const DoctorReport& report);

}  // namespace tenonnx
