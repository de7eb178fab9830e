// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// An ONNX model in memory, with its external data mapped and never inlined, and its own large
// initializers shared among clones (model/shared_weights.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "model/shared_weights.h"
#include "tenonnx/base.h"

namespace onnx {
class ModelProto;
class TensorProto;
}  // namespace onnx

namespace tenonnx {

// What ONNX Runtime 1.29 takes.
inline constexpr std::int64_t kMaxIrVersion = 13;
inline constexpr std::int64_t kMaxOpset = 26;

struct SaveOptions {
  // Keeps doc_string and metadata_props, where exporters leave source paths, stack traces and name
  // scopes of the machine that exported.
  bool keep_metadata = false;
  // Initializers of at least so many bytes go into the data file; those that are external already
  // stay external whatever their size.
  std::uint64_t external_threshold = UINT64_MAX;
  // The name of the data file beside the model; "" for "<file name>.data". Its content is
  // 4096-byte aligned, which ONNX Runtime needs for mapping it.
  std::string data_file;
  // Where the SHA-256 of the model file goes, if anywhere: reading it again costs as much as
  // writing.
  std::string* sha256 = nullptr;
};

// One external data file of a model: `location` as the model's tensors name it, relative to the
// model's directory. ONNX Runtime takes both by AddExternalInitializersFromFilesInMemory.
struct ExternalFile {
  std::string location;
  std::shared_ptr<const MappedFile> file;
};

// Movable; clone() copies. Const methods may be called from several threads at once.
class Model {
 public:
  // An empty model (no graph, no opset): a place to move another into.
  Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  // Reads and checks a model (model/check.h). Errors:
  //   NotFound          the file or one of its external data files
  //   DataLoss          not ONNX, cut off, or inconsistent in itself: cycles, dangling inputs, two
  //                     tensors of one name, data that does not fill its shape or its file
  //   InvalidArgument   external data outside the model's directory
  //   Unsupported       IR above 13, opset above 26, a protobuf over 2 GB
  // Nodes that are not in topological order are sorted, stably, and a warning names the first.
  static Result<Model> load(const std::filesystem::path& path);
  // The same from memory; external data is looked up in `base_dir`; `where` stands in errors.
  static Result<Model> from_bytes(std::string_view bytes, const std::filesystem::path& base_dir,
                                  std::string_view where);
  // The same from a proto that was built in memory.
  static Result<Model> from_proto(onnx::ModelProto proto,
                                  const std::filesystem::path& base_dir = {},
                                  std::string_view where = "model");

  // Writes the model and, where there is external data, its data file; each appears whole or not
  // at all, the data file first. The data is copied from file to file in blocks, never gathered in
  // memory. Unsupported where the protobuf would exceed 2 GB: set external_threshold then.
  Status save(const std::filesystem::path& path, const SaveOptions& options = {}) const;
  // The protobuf as it is (metadata included); external data stays referenced by location.
  Result<std::string> serialize() const;
  // The same with shared weights as references that only this model understands: for whoever takes
  // their values from shared_weights().
  Result<std::string> serialize_references() const;

  const onnx::ModelProto& proto() const { return *proto_; }
  // Whoever changes the proto leaves a valid graph; check_model() tells. Tensors that initializer()
  // and constant() gave out before are invalid after their protos have been changed.
  onnx::ModelProto& mutable_proto() {
    derived_.reset();
    return *proto_;
  }
  // What was derived of the graph and is worth keeping for whoever looks at it next (an index,
  // types and shapes: passes/graph_facts.h). mutable_proto() drops it; clone() does not copy it.
  std::shared_ptr<void>& derived() { return derived_; }
  // Copies the proto and shares the mapped files and the weights.
  Model clone() const;
  // Moves large initializers that lie in the proto to where clones share them, and drops what no
  // initializer refers to any more. Of a model that was loaded they are shared already; whoever
  // adds large ones calls it. Tensors that were given out before are invalid.
  void share_weights();
  // So that tensors of the other's proto may be put into this one's.
  void adopt_weights(const Model& other);
  // The shared ones with their names, in the order of the graph. The Tensors keep them alive.
  Result<std::vector<std::pair<std::string, Tensor>>> shared_weights() const;
  // The bytes of a tensor that is_shared(). NotFound where they belong to another model.
  Result<SharedBytes> shared_bytes(const onnx::TensorProto& tensor) const;
  // A model of another proto with this one's external files, directory and source; for passes and
  // extraction, which build a new graph from this one's tensors. Not checked.
  Model with_proto(std::unique_ptr<onnx::ModelProto> proto) const;

  // Graph inputs that are no initializers, and graph outputs, in their order.
  std::vector<TensorInfo> inputs() const;
  std::vector<TensorInfo> outputs() const;

  // A view of an initializer of the main graph: no copy where the data is raw, shared or external.
  // The Tensor keeps the model's memory alive. NotFound; Unsupported for strings and 4-bit types.
  Result<Tensor> initializer(std::string_view name) const;
  // The same for an initializer or the output of a Constant node.
  Result<Tensor> constant(std::string_view name) const;
  // The same for a tensor of this model's proto (an attribute's, a body's).
  Result<Tensor> tensor(const onnx::TensorProto& proto) const;

  std::int64_t ir_version() const;
  // The imported version of a domain, 0 where it is not imported. "" and "ai.onnx" are one.
  std::int64_t opset(std::string_view domain = "") const;
  // metadata_props of the model.
  std::map<std::string, std::string> metadata() const;

  // The files that the tensors of the model refer to now, each once, in order of location.
  std::vector<ExternalFile> external_files() const;
  // The file it was loaded from ("" for one from memory), and the directory of external data.
  const std::filesystem::path& source_path() const { return source_; }
  const std::filesystem::path& directory() const { return directory_; }
  // SHA-256 of the bytes that were loaded; "" for from_proto(). extract() and clone() keep it: it
  // names the source, not the present state.
  const std::string& sha256() const { return sha256_; }
  // (file name, SHA-256) of the source: the model file first, then its external data files.
  std::vector<std::pair<std::string, std::string>> source_hashes() const;

 private:
  friend class ModelLoader;
  std::shared_ptr<onnx::ModelProto> proto_;
  std::shared_ptr<void> derived_;
  std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>> files_;
  std::map<std::string, SharedBytes, std::less<>> shared_;  // by location
  std::filesystem::path source_, directory_;
  std::string sha256_;
};

}  // namespace tenonnx
