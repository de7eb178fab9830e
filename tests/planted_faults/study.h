// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Cases of one model: faults are drawn, kept where the task gate moves, and looked for.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fault.h"
#include "numerics/locate.h"

namespace tenonnx::planted {

// The first so many suspects may name the node.
inline constexpr std::size_t kNamed = 3;

struct CaseRecord {
  std::string model, kind, where, device;  // "executor" or "graph"
  std::string node, tensor, text;
  std::string verdict, headline, answer;  // what the suspect that is the node is called
  std::size_t rank = 0;                   // of that suspect from 1; 0: not among the first three
  bool kind_found = false;
  std::size_t draws = 0;  // until the gate moved
  double seconds = 0;
  std::string error;
};

struct HealthyRecord {
  std::string model, text, verdict, headline;
  double seconds = 0;
  std::string error;
  bool alarm() const { return verdict == "FAIL" || !error.empty(); }
};

class Study {
 public:
  // `images`: files. `work`: a directory for candidates.
  static Result<std::unique_ptr<Study>> open(const std::filesystem::path& model,
                                             std::vector<std::filesystem::path> images,
                                             std::filesystem::path work);

  // nullopt where no drawn site moves the gate.
  Result<std::optional<CaseRecord>> run(const FaultClass& kind, bool in_executor,
                                        const std::string& device, Random& random);
  Result<CaseRecord> run_copy(Random& random);
  Result<HealthyRecord> run_healthy(std::size_t which, Random& random);

  const std::vector<std::pair<std::string, std::string>>& versions() const { return versions_; }

 private:
  struct Judged;
  explicit Study(std::filesystem::path model) : model_(std::move(model)) {}
  LocateOptions options(const std::filesystem::path& image, const std::string& device) const;
  Result<Judged*> judged(const std::filesystem::path& image);
  // Whether the outputs with the fault fail the gate. False where the graph does not run.
  Result<bool> moves(Judged& judged, const std::string& device, const std::string& tensor,
                     const Fault& fault);
  Result<std::string> optimised();

  std::filesystem::path model_, work_;
  std::vector<std::filesystem::path> images_;
  std::map<std::string, std::shared_ptr<Judged>> judged_;
  std::unique_ptr<Facts> facts_;
  std::vector<std::pair<std::string, std::string>> versions_;
};

}  // namespace tenonnx::planted
