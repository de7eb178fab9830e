// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// usage: extract_peer RUNS MODEL OUTPUT INPUT,INPUT... OUTPUT,OUTPUT...
// Loads, indexes, extracts and writes a part of a model RUNS times and prints one JSON object: the
// milliseconds of each run, and this process's peak memory in bytes. No ONNX Runtime in it.
#include <onnx/onnx_pb.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/extract.h"
#include "model/graph.h"
#include "model/model.h"

namespace {

std::vector<std::string> split_names(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream in(text);
  for (std::string name; std::getline(in, name, ',');) names.push_back(name);
  return names;
}

// VmHWM: of this program alone. getrusage's ru_maxrss would begin with the peak of the process that
// started this one.
long long peak_bytes() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("VmHWM:")) return std::atoll(line.c_str() + 6) * 1024;
  return -1;
}

tenonnx::Status extract_once(const std::string& model_path, const std::string& output_path,
                             const std::vector<std::string>& inputs,
                             const std::vector<std::string>& outputs) {
  TENONNX_ASSIGN_OR_RETURN(const auto model, tenonnx::Model::load(model_path));
  const tenonnx::GraphIndex index(model.proto().graph());
  for (const auto& name : outputs)
    if (!index.find(name)) return tenonnx::NotFound("no tensor '{}'", name);
  TENONNX_ASSIGN_OR_RETURN(const auto part, tenonnx::extract(model, inputs, outputs));
  return part.save(output_path);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fputs("usage: extract_peer RUNS MODEL OUTPUT INPUTS OUTPUTS\n", stderr);
    return 2;
  }
  const int runs = std::atoi(argv[1]);
  std::string times;
  for (int i = 0; i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto status = extract_once(argv[2], argv[3], split_names(argv[4]), split_names(argv[5]));
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - begin;
    if (!status.ok()) {
      std::fprintf(stderr, "extract_peer: %s\n", status.message().c_str());
      return 1;
    }
    times += (i == 0 ? "" : ", ") + std::to_string(taken.count());
  }
  std::printf("{\"milliseconds\": [%s], \"peak_bytes\": %lld}\n", times.c_str(), peak_bytes());
}
