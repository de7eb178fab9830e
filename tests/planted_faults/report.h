// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "study.h"

namespace tenonnx::planted {

struct Report {
  std::uint64_t seed = 0;
  std::vector<CaseRecord> cases;
  std::vector<HealthyRecord> healthy;
  std::vector<std::string> notes;
  std::vector<std::pair<std::string, std::string>> versions;

  std::size_t nodes() const, kinds() const, alarms() const;
};

Json to_json(const Report& report);
// One line of the log.
std::string line_of(const CaseRecord& one);
std::string line_of(const HealthyRecord& one);
// The numbers that are required of so many cases: 95 % and 90 %; of few, see the comment there.
std::size_t required_nodes(std::size_t cases);
std::size_t required_kinds(std::size_t cases);

}  // namespace tenonnx::planted
