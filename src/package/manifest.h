// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The manifest of a model package: contract, segments, hashes, versions, stages and verdicts.
// Format: docs/reference/package.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "tenonnx/base.h"
#include "tenonnx/contract.h"

namespace tenonnx {

inline constexpr int kManifestSchemaVersion = 1;

struct Segment {
  std::string name;      // "encoder", "decoder", or "segment_0..n"; "model" for an uncut one
  std::string file;      // relative to the package
  std::string executor;  // address
  std::vector<TensorInfo> inputs;  // graph inputs and boundary tensors, by name
  std::vector<TensorInfo> outputs;
};

struct PackagedFile {
  std::string path;  // relative to the package, inside it
  std::string sha256;
  std::uint64_t bytes = 0;
};

// Status of each stage apart, as a file that was written proves nothing about a run.
struct StageStatus {
  std::string stage;   // "export", "build", "runtime_init", "forward"
  std::string status;  // "ok", "failed", "not run"
  std::string detail;
};

struct Manifest {
  int schema_version = kManifestSchemaVersion;
  std::string target;
  std::string verdict;  // "PASS", "FAIL", "INCONCLUSIVE"
  Contract contract;
  std::vector<Segment> segments;                                // in the order of execution
  std::vector<std::pair<std::string, std::string>> boundaries;  // boundary name -> source tensor
  std::vector<PackagedFile> files;  // everything but the manifest itself
  std::string source_model;         // file name only
  std::string source_sha256;
  std::string inputs_sha256;                                  // of the reference inputs
  std::vector<std::pair<std::string, std::string>> versions;  // tool, runtime, device files, ...
  Json settings = Json::object();  // threads, spinning, optimisation level
  std::vector<StageStatus> stages;
  Json checks = Json::array();    // every verdict with value and limit
  Json summary = Json::object();  // images, boxes, mAP, what is not covered
};

Json to_json(const Manifest& manifest);
Result<Manifest> manifest_from_json(const JsonReader& reader);

// What a manifest says in itself, without its files: the schema version; names that are unique;
// segments that chain (each input is an input of the contract or an earlier output of the same
// dtype and shape; every output of the contract is produced, and by one segment only); boundaries
// that cross, of the tensors that the contract's cut names; words (verdict, stages) and SHA-256 of
// the right form; a verdict no better than its checks and stages, and checks no better than their
// values. DataLoss says which field it is.
Status check_manifest(const Manifest& manifest);

// Whether two descriptions are of one tensor: the same dtype, and no dimension that both know (-1
// is unknown) differs.
bool fits(const TensorInfo& a, const TensorInfo& b);

// Reads manifest.json and checks everything that it says of the files: check_manifest, paths that
// stay inside, every file there with its size and SHA-256, no file that the manifest does not name
// (evidence/ included). A manifest above kMaxManifestBytes is refused before it is read.
Result<Manifest> read_package(const std::filesystem::path& package);
inline constexpr std::uint64_t kMaxManifestBytes = 16u << 20;  // a real one has some 20 KB

// Whether a directory is a package, damaged perhaps, and holds nothing else: a manifest.json that
// lists files, and no file that it does not list. FailedPrecondition says what it holds instead.
// For StagedDirectory: --force replaces packages, and nothing that a person has put somewhere.
Status may_replace_package(const std::filesystem::path& directory);

// Fills manifest.files from what lies in `directory` (a staging directory: nothing else may be in
// it), checks the manifest, and writes manifest.json last, so that a directory that has one is
// complete.
Status write_package(const std::filesystem::path& directory, Manifest& manifest);

}  // namespace tenonnx
