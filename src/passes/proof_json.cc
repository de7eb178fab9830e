// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/proof.h"

namespace tenonnx {

Json to_json(const PassProof& proof) {
  Json failures = Json::array();
  for (const RegionFailure& failure : proof.failures)
    failures.push_back({{"before", failure.before},
                        {"after", failure.after},
                        {"input", failure.input},
                        {"check", to_json(failure.check)},
                        {"minimal_case", failure.minimal_case.string()}});
  Json sampling = Json::array();
  for (const SamplingProof& region : proof.sampling) sampling.push_back(to_json(region));
  return {{"verdict", to_string(proof.verdict)},
          {"executor", proof.executor},
          {"regions", proof.regions},
          {"distinct", proof.distinct},
          {"captured_inputs", proof.captured_inputs},
          {"made_inputs", proof.made_inputs},
          {"with_context", proof.with_context},
          {"worst", to_json(proof.worst)},
          {"failures", std::move(failures)},
          {"sampling", std::move(sampling)},
          {"notes", proof.notes},
          {"seconds", json_number(proof.seconds)}};
}

}  // namespace tenonnx
