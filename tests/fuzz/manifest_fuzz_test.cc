// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A package whose manifest (bytes and JSON fields) or files are damaged, once a seed: no crash, no
// hang, no more than 512 MB, and nothing accepted whose schema version, paths, sizes or hashes do
// not hold. TENONNX_FUZZ_SEEDS: how many (500); TENONNX_FUZZ_FIRST: the first one (1), to repeat a
// case.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <set>

#include "base/files.h"
#include "base/json.h"
#include "base/temporary_directory.h"
#include "metrics/limit.h"
#include "package/manifest.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;

volatile int g_seed = 0;

// Names the seed, from a signal handler: only write() is safe there.
void on_signal(int signal) {
  char text[] = "manifest fuzz: signal __ in seed __________\n";
  text[22] = static_cast<char>('0' + signal / 10);
  text[23] = static_cast<char>('0' + signal % 10);
  for (int i = 41, seed = g_seed; i >= 33; --i, seed /= 10)
    text[i] = static_cast<char>('0' + seed % 10);
  [[maybe_unused]] const auto n = ::write(STDERR_FILENO, text, sizeof text - 1);
  ::_exit(99);
}

// Seconds of processor time until SIGPROF, 0 for none: a case that waits for other programs is not
// a hang, and ctest's time limit ends one that sleeps.
void limit_cpu(int seconds) {
  itimerval limit{};
  limit.it_value.tv_sec = seconds;
  ::setitimer(ITIMER_PROF, &limit, nullptr);
}

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

  void bytes(std::string& text) {
    for (std::size_t n = 1 + below(4); n > 0; --n) {
      const std::size_t at = below(text.size() + 1);
      switch (below(6)) {
        case 0:
          if (at < text.size()) text[at] = static_cast<char>(random_());
          break;
        case 1:
          if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
          break;
        case 2:
          text.erase(at, 1 + below(40));
          break;
        case 3:
          text.insert(at, text.substr(below(text.size()), 1 + below(60)));
          break;
        case 4:
          text.insert(at, kTokens[below(std::size(kTokens))]);
          break;
        case 5:
          text.resize(at);
          break;
      }
    }
  }

  // Changes one value, key or element somewhere in the tree.
  void field(Json& json) {
    if (json.is_object() && !json.empty() && below(5) != 0) {
      auto it = json.begin();
      std::advance(it, static_cast<std::ptrdiff_t>(below(json.size())));
      switch (below(8)) {
        case 0:
          json.erase(it.key());
          return;
        case 1:
          json[it.key() + "x"] = value();
          return;
        case 2:
          it.value() = value();
          return;
        default:
          field(it.value());
          return;
      }
    }
    if (json.is_array() && !json.empty() && below(5) != 0) {
      const std::size_t at = below(json.size());
      switch (below(8)) {
        case 0:
          json.erase(at);
          return;
        case 1:
          json.push_back(Json(json[at]));
          return;
        case 2:
          std::swap(json[at], json[below(json.size())]);
          return;
        default:
          field(json[at]);
          return;
      }
    }
    if (json.is_string() && below(2) == 0) {
      std::string text = json.get<std::string>();
      if (text.empty()) return;
      text[below(text.size())] = static_cast<char>(' ' + below(95));
      json = text;
      return;
    }
    json = value();
  }

 private:
  Json value() {
    switch (below(12)) {
      case 0:
        return nullptr;
      case 1:
        return static_cast<std::int64_t>(random_());
      case 2:
        return -1;
      case 3:
        return UINT64_MAX;
      case 4:
        return 1e308;
      case 5:
        return Json::array();
      case 6:
        return Json::object();
      case 7:
        return true;
      case 8:
        return std::string(below(5000), 'x');
      default:
        return kTokens[below(std::size(kTokens))];
    }
  }

  static constexpr const char* kTokens[] = {"../outside",
                                            "/etc/passwd",
                                            "evidence/../encoder.onnx",
                                            "manifest.json",
                                            "./encoder.onnx",
                                            "",
                                            "encoder.onnx",
                                            "decoder.onnx",
                                            "evidence",
                                            "cpu",
                                            "sim:htp-v73",
                                            "PASS",
                                            "FAIL",
                                            "ok",
                                            "\"",
                                            "[[[[[[[[",
                                            "{\"a\":",
                                            "}",
                                            "]",
                                            ",",
                                            "null",
                                            "-1",
                                            "1e999",
                                            "\\u0000",
                                            "\xff\xfe",
                                            "float32",
                                            "feature_0",
                                            "images",
                                            "a/b/c/d",
                                            "\n"};

  std::mt19937 random_;
};

class ManifestFuzz : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(package_ / "evidence");
    for (const auto& [name, bytes] : files_) write(name, bytes);
    std::ofstream(temporary_.path() / "outside") << "outside";
    Manifest m;
    m.target = "sim-htp";
    m.verdict = "PASS";
    m.contract.image.shape = {1, 3, 160, 160};
    m.contract.size = SizeInput{};
    m.contract.classes = {"circle", "cross"};
    const TensorInfo images{"images", DType::kFloat32, {1, 3, 160, 160}};
    const TensorInfo size{"orig_target_sizes", DType::kInt64, {1, 2}};
    const TensorInfo feature{"feature_0", DType::kFloat32, {1, 64, -1, 20}};
    m.segments = {{"encoder", "encoder.onnx", "sim:htp-v73", {images}, {feature}},
                  {"decoder",
                   "decoder.onnx",
                   "cpu",
                   {feature, size},
                   {{"labels", DType::kInt64, {1, 100}},
                    {"boxes", DType::kFloat32, {1, 100, 4}},
                    {"scores", DType::kFloat32, {1, 100}}}}};
    m.boundaries = {{"feature_0", "/model/encoder/Mul_output_0"}};
    m.source_model = "shapes.onnx";
    m.source_sha256 = sha256_hex("the model");
    m.inputs_sha256 = sha256_hex("the inputs");
    m.versions = {{"tenonnx", "0.1.0"}, {"onnxruntime", "1.29.0"}};
    m.settings = {{"intra_op_threads", 2}};
    m.stages = {{"export", "ok", ""},
                {"build", "ok", ""},
                {"runtime_init", "ok", ""},
                {"forward", "ok", ""}};
    m.checks = Json::array({to_json(make_check("scores cosine", 0.9999, Comparison::kAtLeast,
                                               {0.99, "gate of a heterogeneous chain"}))});
    m.summary = {{"images", 20}};
    ASSERT_TRUE(write_package(package_, m).ok());
    const auto text = read_file(package_ / "manifest.json");
    ASSERT_TRUE(text.ok());
    manifest_ = *text;
  }

  void write(const std::string& name, std::string_view bytes) const {
    std::ofstream(package_ / name, std::ios::binary | std::ios::trunc) << bytes;
  }

  // One damage a seed. Returns what was done, for the message.
  std::string damage(Mutator& m) {
    switch (m.below(5)) {
      case 0: {
        std::string text = manifest_;
        m.bytes(text);
        write("manifest.json", text);
        return "bytes of the manifest";
      }
      case 1: {
        auto file = files_.begin();
        std::advance(file, static_cast<std::ptrdiff_t>(m.below(files_.size())));
        std::string bytes = file->second;
        m.bytes(bytes);
        write(file->first, bytes);
        touched_ = file->first;
        return "bytes of " + file->first;
      }
      case 2: {
        extra_ = m.below(2) == 0 ? "extra" : "evidence/extra.json";
        write(extra_, "x");
        return "an extra file";
      }
      default: {
        Json json = Json::parse(manifest_);
        for (std::size_t n = 1 + m.below(3); n > 0; --n) m.field(json);
        write("manifest.json", json.dump(1, ' ', false, Json::error_handler_t::replace));
        return "fields of the manifest";
      }
    }
  }

  void restore() {
    write("manifest.json", manifest_);
    if (!touched_.empty()) write(touched_, files_.at(touched_));
    if (!extra_.empty()) fs::remove(package_ / extra_);
    touched_.clear();
    extra_.clear();
  }

  // What an accepted package must satisfy, asked of the disk and of the JSON, not of our reader.
  void expect_sound(const std::string& what) const {
    const Json json = Json::parse(std::ifstream(package_ / "manifest.json"));
    EXPECT_EQ(json.at("schema_version"), 1) << what;
    std::set<std::string> named;
    for (const Json& file : json.at("files")) {
      const std::string path = file.at("path");
      named.insert(path);
      std::ifstream in(package_ / path, std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(in)), {});
      EXPECT_EQ(file.at("bytes"), bytes.size()) << what << ": " << path;
      EXPECT_EQ(file.at("sha256"), sha256_hex(bytes)) << what << ": " << path;
    }
    std::set<std::string> there;
    for (const auto& entry : fs::recursive_directory_iterator(package_))
      if (entry.is_regular_file()) there.insert(fs::relative(entry.path(), package_).string());
    there.erase("manifest.json");
    EXPECT_EQ(named, there) << what;  // "../outside" and "a/../b" would stand out here
  }

  TemporaryDirectory temporary_;
  const fs::path package_ = temporary_.path() / "pkg";
  const std::map<std::string, std::string> files_ = {{"encoder.onnx", "the encoder's bytes"},
                                                     {"decoder.onnx", "the decoder's bytes"},
                                                     {"evidence/checks.json", "[]\n"}};
  std::string manifest_, touched_, extra_;
};

TEST_F(ManifestFuzz, NothingUnsoundIsAccepted) {
  const auto number = [](const char* name, int fallback) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::atoi(text) : fallback;
  };
  const int first = number("TENONNX_FUZZ_FIRST", 1);
  const int seeds = number("TENONNX_FUZZ_SEEDS", 500);
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPROF})
    ::signal(signal, on_signal);
  int accepted = 0;
  for (int seed = first; seed < first + seeds; ++seed) {
    g_seed = seed;
    Mutator mutator(static_cast<unsigned>(seed));
    const std::string what = "seed " + std::to_string(seed) + ", " + damage(mutator);
    limit_cpu(2);
    const auto read = read_package(package_);
    limit_cpu(0);
    if (read.ok()) {
      ++accepted;
      expect_sound(what);
    } else {
      EXPECT_FALSE(read.status().message().empty()) << what;
    }
    restore();
  }
  ASSERT_TRUE(read_package(package_).ok());  // restored: the loop did test damages one by one
  // A damage may be harmless (another word in a check's note), but hardly all of them.
  EXPECT_LT(accepted, seeds / 2);
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 512 * 1024) << "KB at the peak";
  RecordProperty("accepted", accepted);
}

}  // namespace
}  // namespace tenonnx
