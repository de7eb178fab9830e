// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// coco_eval_cases FILE: reads [{"annotations": <COCO annotations>, "results": <COCO results>}, ...]
// and prints the twelve figures of each case in one line, for coco_reference_test.py.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "base/json.h"
#include "base/status.h"
#include "eval/average_precision.h"
#include "eval/coco.h"

namespace tenonnx {
namespace {

Status run(const char* path) {
  TENONNX_ASSIGN_OR_RETURN(auto json, read_json_file(path));
  const JsonReader root(json, path);
  TENONNX_ASSIGN_OR_RETURN(auto cases, root.items());
  for (const JsonReader& one : cases) {
    TENONNX_ASSIGN_OR_RETURN(auto annotations, one.at("annotations"));
    TENONNX_ASSIGN_OR_RETURN(auto results, one.at("results"));
    TENONNX_ASSIGN_OR_RETURN(auto dataset,
                             parse_coco_annotations(annotations.json(), annotations.where()));
    TENONNX_ASSIGN_OR_RETURN(auto detections, parse_coco_results(results.json(), results.where()));
    TENONNX_ASSIGN_OR_RETURN(auto evaluation, CocoEvaluation::create(dataset, detections));
    // 17 digits give a double back exactly.
    fmt::print("{:.17g}\n", fmt::join(evaluation.figures().stats(), " "));
  }
  return {};
}

}  // namespace
}  // namespace tenonnx

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: coco_eval_cases FILE\n");
    return 2;
  }
  const tenonnx::Status status = tenonnx::run(argv[1]);
  if (!status.ok()) fmt::print(stderr, "{}\n", status.message());
  return status.ok() ? 0 : 2;
}
