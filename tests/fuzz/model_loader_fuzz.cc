// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// usage: model_loader_fuzz [--seeds N] [--first S] [--keep FILE] [--verbose] | --self-test
// Damages small valid models and the example, one a seed, and loads the result: no crash, no hang,
// at most 2 s of processor time and 512 MB. What the loader accepts is then used as the commands
// use it: edges, shapes, report, extraction, saving; what is saved must load again. At last ONNX
// Runtime gets it: nothing that goes the way of `deploy` (load, then a session) may be accepted
// although ONNX Runtime refuses the same bytes. Each case has a process of its own. Exit code 1
// where a case fails; each is named with its seed: --first S --seeds 1 --verbose repeats it.
#include <google/protobuf/stubs/logging.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>
#include <onnxruntime_cxx_api.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "model/extract.h"
#include "model/graph.h"
#include "model/inspect.h"
#include "model/model.h"
#include "model/shapes.h"
#include "model/tensor_proto.h"
#include "model_seeds.h"
#include "mutate.h"
#include "ort/library.h"
#include "ort/session.h"

namespace tenonnx::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr rlim_t kSeconds = 2;
constexpr std::uint64_t kBytes = 512ull << 20;
// ONNX Runtime is not ours: its sessions have looser limits, which only find hangs. A changed
// dimension can make it allocate 14 GB for one kernel; it reports an allocation that fails.
constexpr rlim_t kRuntimeSeconds = 20;
constexpr std::uint64_t kRuntimeBytes = 2ull << 30;

// How a case ended: the exit code of its process.
enum Outcome { kRefused = 0, kAccepted = 10, kRuntimeRefused = 11, kWrong = 12 };

struct Corpus {
  std::vector<std::string> models;  // serialized; the last one is the example
  fs::path directory;               // of external data
};

const std::vector<std::string> kWords = {"../../etc/passwd",
                                         "/etc/passwd",
                                         "w.bin",
                                         "location",
                                         "offset",
                                         "length",
                                         "-1",
                                         "18446744073709551615",
                                         "ai.onnx",
                                         "com.microsoft",
                                         "com.acme",
                                         "Identity",
                                         "If",
                                         "Loop",
                                         "Reshape",
                                         "Expand",
                                         "ConstantOfShape",
                                         "Resize",
                                         "Constant",
                                         "Pad",
                                         "Range",
                                         "Tile",
                                         "then_branch",
                                         "body",
                                         "value",
                                         "axis",
                                         "perm"};

std::string damaged(const Corpus& corpus, std::uint32_t seed, Mutator& mutator) {
  // The example is 100 times as large as the others: one case in 16.
  const std::size_t last = corpus.models.size() - 1;
  std::string bytes = seed % 16 == 0 ? corpus.models[last] : corpus.models[mutator.below(last)];
  if (mutator.below(3) == 0) {
    mutator.bytes(bytes);
    return bytes;
  }
  onnx::ModelProto proto;
  proto.ParseFromString(bytes);
  mutator.message(proto, kWords, 3);
  return proto.SerializeAsString();
}

int wrong(const char* what, const Status& status) {
  std::fprintf(stderr, "  %s: %s\n", what, status.message().c_str());
  return kWrong;
}

// Everything that a command may do with an accepted model. The results do not matter here, but
// that there are some.
int use(const Model& model, const fs::path& work, Mutator& mutator) {
  const GraphIndex index(model.proto().graph());
  if (const auto order = topological_order(model.proto().graph()); !order.ok())
    return wrong("accepted with a cycle", order.status());
  infer_shapes(model);
  if (const auto report = inspect(model); !report.ok()) return wrong("inspect", report.status());
  for (const auto& t : model.proto().graph().initializer())
    if (const auto values = model.tensor(t);
        !values.ok() && values.status().code() != StatusCode::kUnsupported)
      return wrong("an initializer that was accepted", values.status());
  std::vector<std::string> inputs, outputs;
  for (const auto& info : model.inputs()) inputs.push_back(info.name);
  for (const auto& info : model.outputs()) outputs.push_back(info.name);
  static_cast<void>(extract(model, inputs, outputs));
  if (!index.values().empty()) {
    const Value& value = mutator.one_of(index.values());
    static_cast<void>(split(model, {std::string(value.name)}));
    static_cast<void>(extract(model, {std::string(value.name)}, outputs));
  }
  const Status saved = model.save(work / "saved.onnx", {.external_threshold = 16});
  if (!saved.ok()) return wrong("saving what was accepted", saved);
  if (const auto again = Model::load(work / "saved.onnx"); !again.ok())
    return wrong("loading what was saved", again.status());
  return kAccepted;
}

// Refused by ONNX Runtime: it must not get through load_session() either.
int compare_with_runtime(const Model& model, const std::string& bytes, const fs::path& directory) {
  // The bytes as they are, in the same directory, where external data would be found.
  const fs::path path = directory / "raw.onnx";
  if (!write_file_atomic(path, bytes).ok()) return kWrong;
  Status refused;
  try {
    Ort::SessionOptions options;
    options.SetIntraOpNumThreads(1);
    options.SetGraphOptimizationLevel(ORT_DISABLE_ALL);
    const Ort::Env env(onnxruntime_env());
    const Ort::Session session(env, path.c_str(), options);
  } catch (const std::exception& error) {
    refused = Status(StatusCode::kInternal, error.what());
  }
  LoadOptions options;
  options.intra_op_threads = 1;
  options.optimization = Optimization::kDisabled;
  const auto ours = load_session(model, options, {});
  if (!refused.ok() && ours.ok()) return wrong("accepted, but ONNX Runtime refuses it", refused);
  if (!ours.ok() && ours.status().message().empty()) return kWrong;
  return refused.ok() ? kAccepted : kRuntimeRefused;
}

void limit(int resource, rlim_t soft) {
  rlimit now{};
  ::getrlimit(resource, &now);
  now.rlim_cur = std::min(soft, now.rlim_max);
  ::setrlimit(resource, &now);
}

std::uint64_t virtual_bytes() {
  long pages = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void limit_case() {
  limit(RLIMIT_CPU, kSeconds);
#ifndef __SANITIZE_ADDRESS__  // its shadow is larger than any limit
  limit(RLIMIT_AS, virtual_bytes() + kBytes);
#endif
}

int run_case(const Corpus& corpus, std::uint32_t seed, bool verbose, const fs::path& keep) {
  Mutator mutator(seed);
  const std::string bytes = damaged(corpus, seed, mutator);
  if (!keep.empty() && !write_file_atomic(keep, bytes).ok()) return kWrong;
  const TemporaryDirectory work;
  limit_case();
  const auto model = Model::from_bytes(bytes, corpus.directory, "damaged");
  if (verbose)
    std::fprintf(stderr, "  %s\n", model.ok() ? "accepted" : model.status().message().c_str());
  if (!model.ok()) {
    // Internal is what an allocation beyond the limit becomes.
    if (model.status().code() == StatusCode::kInternal) return wrong("loading", model.status());
    return model.status().message().empty() ? kWrong : kRefused;
  }
  const int used = use(*model, work.path(), mutator);
  if (used != kAccepted) return used;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
#ifndef __SANITIZE_ADDRESS__
  limit(RLIMIT_AS, virtual_bytes() + kRuntimeBytes);
#endif
  limit(RLIMIT_CPU,
        static_cast<rlim_t>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + kRuntimeSeconds);
  // A directory of its own for the bytes, with the external data linked in.
  std::error_code error;
  fs::create_hard_link(corpus.directory / "w.bin", work.path() / "w.bin", error);
  return compare_with_runtime(*model, bytes, work.path());
}

bool make_corpus(Corpus& corpus) {
  for (const char* text : kModelSeeds) {
    onnx::ModelProto proto;
    const auto status = onnx::OnnxParser::Parse(proto, text);
    if (!status.IsOK()) {
      std::fprintf(stderr, "a seed model: %s\n", status.ErrorMessage().c_str());
      return false;
    }
    corpus.models.push_back(proto.SerializeAsString());
  }
  // The first one again, its weights outside.
  onnx::ModelProto proto;
  proto.ParseFromString(corpus.models.front());
  set_external(*proto.mutable_graph()->mutable_initializer(0), {"w.bin", 4096, 32, true});
  corpus.models.push_back(proto.SerializeAsString());
  if (!write_file_atomic(corpus.directory / "w.bin", std::string(8192, '\0')).ok()) return false;
  const auto example =
      read_file(fs::path(TENONNX_TEST_SOURCE_DIR) / "examples/models/shapes_deimv2.onnx");
  if (!example.ok()) {
    std::fprintf(stderr, "%s\n", example.status().message().c_str());
    return false;
  }
  corpus.models.push_back(*example);
  // The fuzzer must start from what is accepted, else it tests nothing.
  for (const std::string& model : corpus.models)
    if (const auto loaded = Model::from_bytes(model, corpus.directory, "seed"); !loaded.ok()) {
      std::fprintf(stderr, "a seed model: %s\n", loaded.status().message().c_str());
      return false;
    }
  return true;
}

// Runs `fn` in a process of its own; its exit code, or minus the signal that ended it.
template <typename Fn>
int in_child(const Fn& fn) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(120);  // by the wall clock: only for a case that sleeps
    ::_exit(fn());
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return kWrong;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// The limits work: too much memory, a hang and a crash are seen as what they are.
int self_test() {
  const int memory = in_child([] {
    limit_case();
    const Tensor large(DType::kUInt8, {static_cast<std::int64_t>(kBytes)});
    return large.defined() ? static_cast<int>(kAccepted) : static_cast<int>(kWrong);
  });
  const int hang = in_child([] {
    limit_case();
    for (volatile int i = 0;;) i = i + 1;
    return static_cast<int>(kAccepted);
  });
  const int crash = in_child([] {
    *static_cast<volatile int*>(nullptr) = 1;
    return static_cast<int>(kAccepted);
  });
  std::printf("memory: %d, hang: %d, crash: %d\n", memory, hang, crash);
#ifdef __SANITIZE_ADDRESS__
  return hang == -SIGXCPU && crash != kAccepted ? 0 : 1;
#else
  return memory == -SIGABRT && hang == -SIGXCPU && crash == -SIGSEGV ? 0 : 1;
#endif
}

int run(std::uint32_t first, std::uint32_t seeds, bool verbose, const fs::path& keep) {
  google::protobuf::SetLogHandler(nullptr);  // damaged text fields are meant
  // Opened before forking, so that each case need not. It starts no thread.
  if (const auto runtime = onnxruntime(); !runtime.ok()) {
    std::fprintf(stderr, "%s\n", runtime.status().message().c_str());
    return 2;
  }
  const TemporaryDirectory directory;
  Corpus corpus{{}, directory.path()};
  if (!make_corpus(corpus)) return 2;
  int refused = 0, accepted = 0, runtime_refused = 0, failed = 0;
  for (std::uint32_t seed = first; seed < first + seeds; ++seed) {
    const int code = in_child([&] { return run_case(corpus, seed, verbose, keep); });
    if (code == kRefused) {
      ++refused;
    } else if (code == kAccepted) {
      ++accepted;
    } else if (code == kRuntimeRefused) {
      ++runtime_refused;
    } else {
      ++failed;
      std::fprintf(stderr, "seed %u: %s\n", seed, code < 0 ? ::strsignal(-code) : "a wrong result");
    }
  }
  std::printf("%u cases: %d refused on loading, %d by ONNX Runtime, %d accepted, %d failed\n",
              seeds, refused, runtime_refused, accepted, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tenonnx::fuzz

int main(int argc, char** argv) {
  std::uint32_t first = 1, seeds = 500;
  bool verbose = false;
  std::filesystem::path keep;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--self-test") return tenonnx::fuzz::self_test();
    if (option == "--verbose") {
      verbose = true;
    } else if (option == "--seeds" && i + 1 < argc) {
      seeds = static_cast<std::uint32_t>(std::strtoul(argv[++i], nullptr, 10));
    } else if (option == "--keep" && i + 1 < argc) {
      keep = argv[++i];
    } else if (option == "--first" && i + 1 < argc) {
      first = static_cast<std::uint32_t>(std::strtoul(argv[++i], nullptr, 10));
    } else {
      std::fputs(
          "usage: model_loader_fuzz [--seeds N] [--first S] [--keep FILE] [--verbose] | "
          "--self-test\n",
          stderr);
      return 2;
    }
  }
  return tenonnx::fuzz::run(first, seeds, verbose, keep);
}
