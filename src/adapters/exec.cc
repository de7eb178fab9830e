// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/exec.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "adapters/printable.h"
#include "adapters/process.h"
#include "adapters/recording.h"
#include "base/files.h"
#include "base/nearest.h"
#include "base/npy.h"
#include "base/status.h"
#include "model/graph.h"
#include "ort/inputs.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kTimeout = "timeout=";
constexpr double kDefaultSeconds = 600;
constexpr double kMostSeconds = 7 * 24 * 3600.0;
constexpr std::size_t kLogLines = 15;    // of the log in an error
constexpr std::size_t kLogBytes = 2000;  // and at most so much
constexpr int kPlacementVersion = 1;

Result<double> seconds_from(std::string_view text, std::string_view where) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() ||
      !(seconds > 0 && seconds <= kMostSeconds))
    return InvalidArgument(
        "{}'{}' is no time limit: a number of seconds above 0 and up to {:.0f} is "
        "needed",
        where, text, kMostSeconds);
  return seconds;
}

// The end of a log, indented, for an error.
std::string last_lines(const fs::path& log) {
  const auto text = read_file(log);
  if (!text.ok()) return "";
  const std::string_view all = *text;
  const std::string safe = printable(all.substr(all.size() - std::min(all.size(), 4 * kLogBytes)));
  std::string_view rest = safe;
  while (rest.ends_with('\n')) rest.remove_suffix(1);
  if (rest.empty()) return ". It printed nothing";
  std::size_t begin = rest.size();
  for (std::size_t lines = 0; lines < kLogLines && begin != std::string_view::npos && begin > 0;
       ++lines)
    begin = rest.rfind('\n', begin - 1);
  if (begin == std::string_view::npos) begin = 0;
  std::string_view tail = rest.substr(begin);
  if (tail.size() > kLogBytes) {
    tail.remove_prefix(tail.size() - kLogBytes);
    while (!tail.empty() && (tail.front() & 0xC0) == 0x80) tail.remove_prefix(1);  // half a letter
  }
  while (tail.starts_with('\n')) tail.remove_prefix(1);
  std::string out = ". It printed last:\n    ";
  for (const char c : tail) {
    out += c;
    if (c == '\n') out.append("    ");
  }
  return out;
}

// The directory that the command works in. Kept where it is told to, else removed.
class WorkDirectory {
 public:
  static Result<std::unique_ptr<WorkDirectory>> create() {
    auto work = std::make_unique<WorkDirectory>();
    std::error_code error;
    const char* parent = std::getenv("TENONNX_EXEC_DIR");
    work->keep_ = parent != nullptr && *parent != '\0';
    const fs::path base =
        work->keep_ ? fs::absolute(parent, error) : fs::temp_directory_path(error);
    if (!error) work->path_ = base / ("tenonnx-exec-" + random_suffix());
    const auto hold = hold_interrupt();
    if (!error) fs::create_directories(work->path_, error);
    if (!error && !work->keep_) work->on_interrupt_ = RemovedOnInterrupt(work->path_);
    if (error)
      return Io("cannot make a directory in '{}' for an exec executor: {}", base.string(),
                error.message());
    return work;
  }
  WorkDirectory() = default;
  WorkDirectory(const WorkDirectory&) = delete;
  WorkDirectory& operator=(const WorkDirectory&) = delete;
  ~WorkDirectory() {
    std::error_code error;
    if (!keep_ && !path_.empty()) fs::remove_all(path_, error);
  }
  const fs::path& path() const { return path_; }
  void keep() {
    keep_ = true;
    on_interrupt_.reset();
  }

 private:
  fs::path path_;
  RemovedOnInterrupt on_interrupt_;
  bool keep_ = false;
};

struct Command {
  std::string text;  // as in the address
  std::vector<std::string> words;
  double seconds = kDefaultSeconds;
};

// The names by which placement.json may call the nodes of a graph and its bodies: a node's own (a
// loaded model has one for each), or one of its outputs.
std::set<std::string> node_names(const onnx::GraphProto& main) {
  std::set<std::string> names;
  for_each_graph(main, [&](const onnx::GraphProto& graph) {
    for (const onnx::NodeProto& node : graph.node()) {
      names.insert(node.output().begin(), node.output().end());
      names.insert(node.name());
    }
  });
  names.erase("");
  return names;
}

class ExecGraph final : public LoadedGraph {
 public:
  ExecGraph(Command command, const Model& model, bool profile, std::unique_ptr<WorkDirectory> work)
      : command_(std::move(command)),
        inputs_(model.inputs()),
        outputs_(model.outputs()),
        profile_(profile),
        nodes_(node_names(model.proto().graph())),
        work_(std::move(work)) {}

  const std::vector<TensorInfo>& inputs() const override { return inputs_; }
  const std::vector<TensorInfo>& outputs() const override { return outputs_; }
  using LoadedGraph::run;

  Status run(std::span<const Tensor> inputs, std::vector<Tensor>& outputs) override {
    TENONNX_RETURN_IF_ERROR(check_inputs(inputs_, inputs));
    TensorMap named;
    for (std::size_t i = 0; i < inputs_.size(); ++i) named[inputs_[i].name] = inputs[i];
    const std::lock_guard lock(mutex_);
    Status status = run_command(named, outputs);
    // Of a program that does not exist there is nothing to look at.
    if (status.ok() || status.code() == StatusCode::kNotFound) return status;
    work_->keep();
    return Status(status.code(), fmt::format("{}\n    Files are kept in '{}'",
                                             printable(status.message()), work_->path().string()));
  }

  Result<Placement> placement() override {
    if (!profile_) return FailedPrecondition("'{}' was not loaded with a profile", command_.text);
    const std::lock_guard lock(mutex_);
    if (placement_) return *placement_;
    Placement placement;
    placement.disagreement = fmt::format("'{}' {}: where its nodes ran is not known", command_.text,
                                         ran_ ? "wrote no placement.json" : "has not run");
    return placement;
  }

  std::string description() const override {
    return fmt::format("command '{}', time limit {} s", command_.text, command_.seconds);
  }

 private:
  fs::path file(std::string_view name) const { return work_->path() / name; }

  Status run_command(const TensorMap& inputs, std::vector<Tensor>& outputs) {
    TENONNX_RETURN_IF_ERROR(write_npz(file("inputs.npz"), inputs));
    // What an earlier run left must not be taken for the answer of this one.
    std::error_code error;
    for (const char* name : {"outputs.npz", "placement.json"}) {
      fs::remove(file(name), error);
      if (error) return Io("cannot remove '{}': {}", file(name).string(), error.message());
    }
    placement_.reset();
    std::vector<std::string> words = command_.words;
    words.push_back(work_->path().string());
    const std::chrono::milliseconds limit(
        static_cast<std::int64_t>(std::ceil(command_.seconds * 1000)));
    const auto ended = run_process(words, file("log.txt"), limit);
    if (!ended.ok()) return ended.status().at("exec:" + command_.text);
    if (ended->timed_out)
      return FailedPrecondition(
          "'{}' did not end within {} s: its process group was killed (what it started outside of "
          "it may still run). Give it longer: exec:timeout=SECONDS,COMMAND or "
          "TENONNX_EXEC_TIMEOUT{}",
          command_.text, command_.seconds, last_lines(file("log.txt")));
    if (ended->exit_code != 0 || ended->signal != 0)
      return FailedPrecondition("'{}' failed: {}{}", command_.text, ended->text(),
                                last_lines(file("log.txt")));
    ran_ = true;
    TENONNX_RETURN_IF_ERROR(read_outputs(outputs));
    return read_placement();
  }

  Status read_outputs(std::vector<Tensor>& outputs) const {
    std::error_code error;
    if (!fs::exists(file("outputs.npz"), error))
      return DataLoss("'{}' ended with exit code 0 and wrote no outputs.npz{}", command_.text,
                      last_lines(file("log.txt")));
    const auto npz = NpzFile::open(file("outputs.npz"));
    if (!npz.ok()) return npz.status().at(fmt::format("'{}'", command_.text));
    outputs.resize(outputs_.size());
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const TensorInfo& info = outputs_[i];
      if (!npz->has(info.name))
        return DataLoss("outputs.npz of '{}' has no array '{}', an output of the model; it has {}",
                        command_.text, info.name,
                        npz->names().empty() ? "none" : nearest_names(info.name, npz->names()));
      auto tensor = npz->read(info.name);
      if (!tensor.ok()) return tensor.status().at(fmt::format("'{}'", command_.text));
      if ((info.dtype != DType::kUndefined && tensor->dtype() != info.dtype) ||
          !shape_fits(tensor->shape(), info))
        return DataLoss("outputs.npz of '{}': '{}' is {} {}, the model's is {} {}", command_.text,
                        info.name, to_string(tensor->dtype()), to_string(tensor->shape()),
                        to_string(info.dtype),
                        info.has_rank ? to_string(info.shape) : "of any shape");
      Tensor& out = outputs[i];
      if (out.defined() && out.dtype() == tensor->dtype() && out.shape() == tensor->shape()) {
        if (out.bytes() > 0) std::memcpy(out.mutable_raw(), tensor->raw(), out.bytes());
      } else {
        out = std::move(tensor).value();
      }
    }
    return {};
  }

  Status read_placement() {
    std::error_code error;
    if (!fs::exists(file("placement.json"), error)) return {};
    const auto json = read_json_file(file("placement.json"));
    if (!json.ok()) return json.status().at(fmt::format("'{}'", command_.text));
    const JsonReader reader(
        *json, fmt::format("'{}': {}", command_.text, file("placement.json").string()));
    TENONNX_ASSIGN_OR_RETURN(placement_, placement_from_json(reader));
    std::vector<std::string> unknown;
    for (const NodePlacement& node : placement_->nodes)
      if (!nodes_.contains(node.node)) unknown.push_back(node.node);
    if (!unknown.empty())
      placement_->disagreement = printable(
          fmt::format("placement.json of '{}' names {} node{} that the graph does not have, the "
                      "first '{}'; it has {}",
                      command_.text, unknown.size(), unknown.size() == 1 ? "" : "s", unknown[0],
                      nearest_names(unknown[0], {nodes_.begin(), nodes_.end()})));
    return {};
  }

  const Command command_;
  const std::vector<TensorInfo> inputs_, outputs_;
  const bool profile_;
  const std::set<std::string> nodes_;  // what placement.json may call them
  const std::unique_ptr<WorkDirectory> work_;
  std::mutex mutex_;
  std::optional<Placement> placement_;
  bool ran_ = false;
};

class ExecExecutor final : public Executor {
 public:
  ExecExecutor(std::string address, Command command)
      : address_(std::move(address)), command_(std::move(command)) {}
  const std::string& address() const override { return address_; }

  Result<std::unique_ptr<LoadedGraph>> load(const Model& model,
                                            const LoadOptions& options) const override {
    TENONNX_ASSIGN_OR_RETURN(auto work, WorkDirectory::create());
    TENONNX_RETURN_IF_ERROR(model.save(work->path() / "model.onnx"));
    return std::unique_ptr<LoadedGraph>(
        std::make_unique<ExecGraph>(command_, model, options.profile, std::move(work)));
  }

  std::vector<std::pair<std::string, std::string>> versions() const override {
    return {{"command", command_.text}};
  }

 private:
  const std::string address_;
  const Command command_;
};

}  // namespace

Result<std::vector<std::string>> split_words(std::string_view command) {
  std::vector<std::string> words;
  bool in_word = false;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == ' ' || c == '\t' || c == '\n') {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (c == '\\') {
      if (++i == command.size())
        return InvalidArgument("the command \"{}\" ends in a backslash", command);
      words.back() += command[i];
    } else if (c == '\'' || c == '"') {
      const std::size_t begin = i++;
      for (; i < command.size() && command[i] != c; ++i) {
        if (c == '"' && command[i] == '\\' && i + 1 < command.size() &&
            (command[i + 1] == '"' || command[i + 1] == '\\'))
          ++i;
        words.back() += command[i];
      }
      if (i >= command.size())
        return InvalidArgument(
            "the command \"{}\" has a quote {} at position {} that nothing closes", command, c,
            begin);
    } else {
      words.back() += c;
    }
  }
  return words;
}

Result<Placement> placement_from_json(const JsonReader& reader) {
  TENONNX_RETURN_IF_ERROR(reader.only({"schema_version", "nodes"}));
  TENONNX_ASSIGN_OR_RETURN(const std::int64_t version, reader.integer("schema_version"));
  if (version != kPlacementVersion)
    return DataLoss("{}: /schema_version is {}, this version reads {}", reader.where(), version,
                    kPlacementVersion);
  TENONNX_ASSIGN_OR_RETURN(const JsonReader nodes, reader.at("nodes"));
  TENONNX_ASSIGN_OR_RETURN(const auto items, nodes.items());
  Placement placement;
  std::map<std::string, int> counts;
  for (const JsonReader& item : items) {
    TENONNX_RETURN_IF_ERROR(item.only({"node", "op_type", "provider", "duration_us"}));
    NodePlacement node;
    TENONNX_ASSIGN_OR_RETURN(node.node, item.string("node"));
    TENONNX_ASSIGN_OR_RETURN(node.op_type, item.string_or("op_type", ""));
    TENONNX_ASSIGN_OR_RETURN(node.provider, item.string("provider"));
    TENONNX_ASSIGN_OR_RETURN(node.duration_us, item.integer_or("duration_us", 0));
    ++counts[node.provider];
    placement.nodes.push_back(std::move(node));
  }
  placement.providers.assign(counts.begin(), counts.end());
  std::stable_sort(placement.providers.begin(), placement.providers.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (placement.nodes.empty())
    placement.disagreement = "placement.json names no node: where they ran is not known";
  return placement;
}

Result<std::unique_ptr<Executor>> make_exec_executor(std::string_view rest) {
  Command command;
  const std::string address = fmt::format("exec:{}", rest);
  if (const char* text = std::getenv("TENONNX_EXEC_TIMEOUT"); text != nullptr && *text != '\0') {
    TENONNX_ASSIGN_OR_RETURN(command.seconds, seconds_from(text, "TENONNX_EXEC_TIMEOUT: "));
  }
  if (rest.starts_with(kTimeout)) {
    const std::size_t comma = rest.find(',');
    if (comma == std::string_view::npos)
      return InvalidArgument("executor '{}': expected exec:timeout=SECONDS,COMMAND", address);
    const auto seconds = seconds_from(rest.substr(kTimeout.size(), comma - kTimeout.size()),
                                      fmt::format("executor '{}': ", address));
    if (!seconds.ok()) return seconds.status();
    command.seconds = *seconds;
    rest.remove_prefix(comma + 1);
  }
  command.text = rest;
  const auto words = split_words(rest);
  if (!words.ok()) return words.status().at(fmt::format("executor '{}'", address));
  command.words = *words;
  if (command.words.empty() || command.words[0].empty())
    return InvalidArgument(
        "executor 'exec' needs a command: exec:COMMAND or exec:timeout=SECONDS,COMMAND");
  return std::unique_ptr<Executor>(std::make_unique<ExecExecutor>(address, std::move(command)));
}

}  // namespace tenonnx
