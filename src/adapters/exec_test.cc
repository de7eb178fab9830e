// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/exec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "adapters/address.h"
#include "base/files.h"
#include "base/npy.h"
#include "base/status.h"
#include "base/temporary_directory.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

constexpr const char* kModel = R"(<ir_version: 8, opset_import: ["" : 17]>
  g (float[2,3] x) => (float[2,3] y, int64[2] best) <float[3] w = {1.5, -2, 0.25}> {
    a = Mul (x, w)
    y = Relu (a)
    best = ArgMax <axis = 1, keepdims = 0> (y)
  })";

class Exec : public ::testing::Test {
 protected:
  Exec() : model_(model_from_text(kModel)), x_(ramp({2, 3})) {
    EXPECT_EQ(::setenv("TENONNX_EXEC_DIR", (dir_ / "work").c_str(), 1), 0);
    right_ = run_on_cpu(model_, {{"x", x_}});
    EXPECT_TRUE(write_npz(dir_ / "right.npz", right_).ok());
  }
  ~Exec() override {
    ::unsetenv("TENONNX_EXEC_DIR");
    ::unsetenv("TENONNX_EXEC_TIMEOUT");
  }
  // A shell script as the command; $1 is the directory, $right the right outputs.
  std::string script(const std::string& text) const {
    std::ofstream(dir_ / "script.sh") << "right='" << (dir_ / "right.npz").string() << "'\n"
                                      << text << "\n";
    return "sh '" + (dir_ / "script.sh").string() + "'";
  }
  Result<TensorMap> run(const std::string& rest) {
    auto executor = make_executor("exec:" + rest);
    if (!executor.ok()) return executor.status();
    LoadOptions options;
    options.profile = true;
    auto graph = (*executor)->load(model_, options);
    if (!graph.ok()) return graph.status();
    graph_ = std::move(*graph);
    return graph_->run({{"x", x_}});
  }
  std::string error(const std::string& rest) {
    const auto result = run(rest);
    return result.ok() ? "" : result.status().message();
  }

  TemporaryDirectory temporary_;
  const fs::path dir_ = temporary_.path();
  const Model model_;
  const Tensor x_;
  TensorMap right_;
  std::unique_ptr<LoadedGraph> graph_;
};

TEST_F(Exec, TheProtocol) {
  const auto result =
      run(script("test -s \"$1/model.onnx\" && test -s \"$1/inputs.npz\" && cp \"$right\" "
                 "\"$1/outputs.npz\""));
  ASSERT_TRUE(result.ok()) << result.status().message();
  expect_identical(*result, right_);
  EXPECT_THAT(graph_->description(), AllOf(HasSubstr("script.sh"), HasSubstr("600 s")));
}

TEST_F(Exec, TheExampleScript) {
  const auto result = run(fmt::format("'{}' '{}/examples/exec/run_model.py'", TENONNX_TEST_PYTHON,
                                      TENONNX_TEST_SOURCE_DIR));
  ASSERT_TRUE(result.ok()) << result.status().message();
  // Products and comparisons of single floats are the same everywhere.
  expect_identical(*result, right_);
  const auto placement = graph_->placement();
  ASSERT_TRUE(placement.ok()) << placement.status().message();
  EXPECT_EQ(placement->disagreement, "");
  ASSERT_EQ(placement->providers.size(), 1u);
  EXPECT_EQ(placement->nodes.size(), 3u);
}

TEST_F(Exec, Placement) {
  ASSERT_TRUE(run(script(R"(cp "$right" "$1/outputs.npz"
    echo '{"schema_version": 1, "nodes": [{"node": "a", "op_type": "Mul", "provider": "NPU"},
      {"node": "y", "op_type": "Relu", "provider": "NPU", "duration_us": 7},
      {"node": "best", "op_type": "ArgMax", "provider": "CPU"}]}' > "$1/placement.json")"))
                  .ok());
  const auto placement = graph_->placement();
  ASSERT_TRUE(placement.ok());
  EXPECT_THAT(placement->providers, ElementsAre(Pair("NPU", 2), Pair("CPU", 1)));
  EXPECT_EQ(placement->nodes[1].duration_us, 7);
  EXPECT_EQ(placement->disagreement, "");
}

TEST_F(Exec, WithoutPlacementNothingIsKnown) {
  ASSERT_TRUE(run(script("cp \"$right\" \"$1/outputs.npz\"")).ok());
  auto placement = graph_->placement();
  ASSERT_TRUE(placement.ok());
  EXPECT_THAT(placement->disagreement, HasSubstr("wrote no placement.json"));
  ASSERT_TRUE(run(script("cp \"$right\" \"$1/outputs.npz\"\necho '{\"schema_version\": 1, "
                         "\"nodes\": []}' > \"$1/placement.json\""))
                  .ok());
  placement = graph_->placement();
  ASSERT_TRUE(placement.ok());
  EXPECT_THAT(placement->disagreement, HasSubstr("names no node"));
}

// Another graph's placement says nothing of this one.
TEST_F(Exec, APlacementOfUnknownNodesIsADisagreement) {
  ASSERT_TRUE(run(script(R"(cp "$right" "$1/outputs.npz"
    echo '{"schema_version": 1, "nodes": [{"node": "a", "provider": "NPU"},
      {"node": "no\u001bpe", "provider": "NPU"}]}' > "$1/placement.json")"))
                  .ok());
  const auto placement = graph_->placement();
  ASSERT_TRUE(placement.ok());
  EXPECT_THAT(placement->disagreement, AllOf(HasSubstr("names 1 node that the graph does not have"),
                                             HasSubstr("'no?pe'"), HasSubstr("'node_0'")));
}

// Escape sequences that retitle or clear a terminal, C1 controls, bytes that are no UTF-8.
TEST_F(Exec, ControlCharactersOfTheLogAreNotPassedOn) {
  const std::string message =
      error(script(R"(printf '\033]0;title\007\033[2J\302\233 \000\377 \342\200\256'
                printf 'gr\303\274n\tok\r\n10%%\r20%%\n'; exit 3)"));
  EXPECT_THAT(message, AllOf(HasSubstr("?]0;title??[2J? ?? ?gr\303\274n\tok\n"),
                             HasSubstr("10%\n    20%"), Not(HasSubstr("\033"))));
  for (const char c : message)
    EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') << int{c};
  const std::string bad_field = error(script(R"(cp "$right" "$1/outputs.npz"
    echo '{"schema_version": 1, "no\u001b[2Jdes": []}' > "$1/placement.json")"));
  EXPECT_THAT(bad_field, Not(HasSubstr("\033")));
}

TEST_F(Exec, AFailureShowsWhatWasPrinted) {
  const std::string message =
      error(script("i=0; while [ $i -lt 40 ]; do echo \"line $i\"; i=$((i+1)); done; echo no board "
                   ">&2; exit 3"));
  EXPECT_THAT(message,
              AllOf(HasSubstr("failed: exit code 3"), HasSubstr("no board"), HasSubstr("line 39"),
                    Not(HasSubstr("line 20")), HasSubstr("Files are kept in")));
  EXPECT_THAT(error(script("kill -SEGV $$")), HasSubstr("signal 11"));
  EXPECT_THAT(error(script("exit 1")), HasSubstr("It printed nothing"));
}

TEST_F(Exec, TheLogIsKeptAfterAFailure) {
  ::setenv("TENONNX_EXEC_DIR", "", 1);
  const std::string message = error(script("echo hello; exit 1"));
  const std::size_t at = message.find("kept in '");
  ASSERT_NE(at, std::string::npos) << message;
  const fs::path kept = message.substr(at + 9, message.rfind('\'') - at - 9);
  graph_.reset();
  const auto log = read_file(kept / "log.txt");
  ASSERT_TRUE(log.ok()) << log.status().message();
  EXPECT_EQ(*log, "hello\n");
  fs::remove_all(kept);
}

TEST_F(Exec, NothingIsLeftAfterSuccess) {
  TemporaryDirectory own;
  const char* before = std::getenv("TMPDIR");
  const std::string old = before == nullptr ? "" : before;
  ::setenv("TMPDIR", own.path().c_str(), 1);
  ::setenv("TENONNX_EXEC_DIR", "", 1);
  EXPECT_EQ(error(script("cp \"$right\" \"$1/outputs.npz\"")), "");
  EXPECT_FALSE(fs::is_empty(own.path()));
  graph_.reset();
  EXPECT_TRUE(fs::is_empty(own.path()));
  before == nullptr ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", old.c_str(), 1);
}

TEST_F(Exec, TheTimeLimitEndsTheWholeGroup) {
  // A grandchild that ignores SIGTERM and would write a file.
  const std::string late = (dir_ / "late").string();
  const auto begin = std::chrono::steady_clock::now();
  const std::string message =
      error("timeout=0.3," + script("echo started; (trap '' TERM; sleep 4; echo > '" + late +
                                    "') & echo $! > '" + (dir_ / "pid").string() + "'; wait"));
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_THAT(message,
              AllOf(HasSubstr("did not end within 0.3 s"), HasSubstr("started"),
                    HasSubstr("its process group was killed"), HasSubstr("timeout=SECONDS")));
  EXPECT_LT(took, std::chrono::seconds(4));
  int pid = 0;
  std::ifstream(dir_ / "pid") >> pid;
  ASSERT_GT(pid, 0);
  // Killed; it may take a moment until init has collected it.
  bool alive = true;
  for (int i = 0; i < 100 && alive; ++i) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string text((std::istreambuf_iterator<char>(stat)), {});
    alive = !text.empty() && text.find(") Z ") == std::string::npos;
    if (alive) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(alive);
  EXPECT_FALSE(fs::exists(late));
}

TEST_F(Exec, TheTimeLimitFromTheEnvironment) {
  ::setenv("TENONNX_EXEC_TIMEOUT", "0.2", 1);
  EXPECT_THAT(error(script("sleep 5")), HasSubstr("within 0.2 s"));
  ::setenv("TENONNX_EXEC_TIMEOUT", "soon", 1);
  EXPECT_THAT(error(script("true")), AllOf(HasSubstr("TENONNX_EXEC_TIMEOUT"), HasSubstr("'soon'")));
  ::unsetenv("TENONNX_EXEC_TIMEOUT");
  for (const char* seconds : {"0", "-1", "x", "", "nan"})
    EXPECT_THAT(error(fmt::format("timeout={},true", seconds)), HasSubstr("is no time limit"));
  EXPECT_THAT(error("timeout=5"), HasSubstr("expected exec:timeout=SECONDS,COMMAND"));
}

TEST_F(Exec, WrongOutputs) {
  EXPECT_THAT(error("true"), HasSubstr("exit code 0 and wrote no outputs.npz"));
  EXPECT_THAT(error(script("echo nonsense > \"$1/outputs.npz\"")),
              AllOf(HasSubstr("outputs.npz"), HasSubstr("not an .npz")));
  const auto copied = [&](const std::string& name, const Tensor& tensor) {
    TensorMap changed = right_;
    changed.erase(name);
    if (tensor.defined()) changed[name] = tensor;
    EXPECT_TRUE(write_npz(dir_ / "wrong.npz", changed).ok());
    return error(script("cp '" + (dir_ / "wrong.npz").string() + "' \"$1/outputs.npz\""));
  };
  EXPECT_THAT(copied("best", {}), AllOf(HasSubstr("no array 'best'"), HasSubstr("it has 'y'")));
  EXPECT_THAT(copied("best", Tensor(DType::kInt32, {2})),
              HasSubstr("'best' is int32 [2], the model's is int64 [2]"));
  EXPECT_THAT(copied("y", Tensor(DType::kFloat32, {3, 2})),
              HasSubstr("'y' is float32 [3,2], the model's is float32 [2,3]"));
}

TEST_F(Exec, WrongPlacement) {
  const auto with = [&](const std::string& json) {
    return error(
        script("cp \"$right\" \"$1/outputs.npz\"\necho '" + json + "' > \"$1/placement.json\""));
  };
  EXPECT_THAT(with("{"), HasSubstr("placement.json"));
  EXPECT_THAT(with(R"({"schema_version": 2, "nodes": []})"), HasSubstr("/schema_version is 2"));
  EXPECT_THAT(with(R"({"schema_version": 1, "nodes": [{"node": "a"}]})"), HasSubstr("/nodes/0"));
  EXPECT_THAT(with(R"({"schema_version": 1, "nodes": [{"node": "a", "provider": "x", "ms": 1}]})"),
              HasSubstr("ms"));
}

// The second run must not take the first one's files for its answer.
TEST_F(Exec, RunsFollowOneAnotherInOneDirectory) {
  ASSERT_TRUE(run(script("test -e \"$1/once\" && exit 0; touch \"$1/once\"; cp \"$right\" "
                         "\"$1/outputs.npz\""))
                  .ok());
  EXPECT_THAT(graph_->run({{"x", x_}}).status().message(), HasSubstr("wrote no outputs.npz"));
}

TEST_F(Exec, CommandsThatAreNone) {
  EXPECT_THAT(error("no-such-program-anywhere --x"),
              AllOf(HasSubstr("no program 'no-such-program-anywhere' in PATH")));
  EXPECT_THAT(error("'open"), HasSubstr("nothing closes"));
  EXPECT_THAT(error("  "), HasSubstr("needs a command"));
  EXPECT_THAT(make_executor("exec").status().message(), HasSubstr("needs a command"));
}

// No shell: what one would expand or run arrives as it is.
TEST_F(Exec, NoShellReadsTheCommand) {
  const std::string made = (dir_ / "made").string();
  const std::string message =
      error("printf '%s\\n' $HOME `touch " + made + "` ; touch " + made + " > " + made + " *");
  EXPECT_FALSE(fs::exists(made));
  EXPECT_THAT(message, AllOf(HasSubstr("$HOME"), HasSubstr("`touch"), HasSubstr("    ;\n")));
}

TEST(SplitWords, Quotes) {
  const auto words = [](std::string_view text) {
    auto result = split_words(text);
    EXPECT_TRUE(result.ok()) << text;
    return result.ok() ? *result : std::vector<std::string>();
  };
  EXPECT_THAT(words("  a  b\tc "), ElementsAre("a", "b", "c"));
  EXPECT_THAT(words(R"('a b' "c 'd'" e\ f "g\"h\\i\j" '' x'y'z)"),
              ElementsAre("a b", "c 'd'", "e f", R"(g"h\i\j)", "", "xyz"));
  EXPECT_THAT(words("a;b $(c) | d"), ElementsAre("a;b", "$(c)", "|", "d"));
  EXPECT_THAT(words(""), IsEmpty());
  EXPECT_FALSE(split_words("a \"b").ok());
  EXPECT_FALSE(split_words("a\\").ok());
}

// Somebody else's package or device file must not start programs.
TEST(MakeExecutor, ACommandOutOfAFileNeedsConsent) {
  const Status status = make_executor("exec:true", AddressOrigin::kFile).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("TENONNX_ALLOW_EXEC=1"));
  ::setenv("TENONNX_ALLOW_EXEC", "1", 1);
  EXPECT_TRUE(make_executor("exec:true", AddressOrigin::kFile).ok());
  ::unsetenv("TENONNX_ALLOW_EXEC");
  EXPECT_TRUE(make_executor("cpu", AddressOrigin::kFile).ok());
}

}  // namespace
}  // namespace tenonnx
