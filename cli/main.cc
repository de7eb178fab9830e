// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Options in, a flow called, text out. Everything that prints or exits is in this folder.
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "base/wording.h"
#include "command.h"
#include "interrupt.h"
#include "standard_streams.h"

namespace tenonnx::cli {
namespace {

constexpr const char* kDescription =
    "tenonnx takes an ONNX detector to an NPU and proves at every boundary that it still computes\n"
    "the same thing, and that it runs where it was meant to run.";

constexpr const char* kFooter =
    "Exit codes: 0 done and passed, 1 a gate failed, 2 wrong usage or bad input, 3 inconclusive.\n"
    "Interrupted (Ctrl-C, SIGTERM, SIGHUP) a command removes what is not finished, says so, and\n"
    "ends by the signal (130, 143, 129 in a shell).\n"
    "Results go to standard output, messages and progress to standard error.\n"
    "'tenonnx COMMAND --help' shows the options of a command.";

void connect_log(const Globals& globals) {
  if (globals.quiet) {
    set_log_sink({});
    return;
  }
  auto logger = std::make_shared<spdlog::logger>("tenonnx",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("tenonnx: %l: %v");
  logger->set_level(globals.verbose ? spdlog::level::debug : spdlog::level::info);
  set_log_sink([logger](LogLevel level, std::string_view message) {
    switch (level) {
      case LogLevel::kDebug:
        logger->debug("{}", message);
        break;
      case LogLevel::kInfo:
        logger->info("{}", message);
        break;
      case LogLevel::kWarning:
        logger->warn("{}", message);
        break;
    }
  });
}

// Descriptions begin in one column; what does not fit into a line goes on there.
void print_help(const std::string& help) {
  constexpr std::size_t kDescriptions = 30;  // CLI11's column_width
  std::string out;
  for (std::size_t begin = 0; begin < help.size();) {
    const std::size_t end = std::min(help.find('\n', begin), help.size());
    const std::string line = help.substr(begin, end - begin);
    const bool described = line.starts_with("  ") && line.size() > kDescriptions &&
                           line[kDescriptions - 1] == ' ' && line[kDescriptions] != ' ';
    out += described ? line.substr(0, kDescriptions) +
                           in_column(std::string_view(line).substr(kDescriptions), kDescriptions)
                     : wrapped(line);
    out += '\n';
    begin = end + 1;
  }
  std::fwrite(out.data(), 1, out.size(), results());
}

struct Registered {
  CLI::App* app;
  RunCommand run;
};

// CLI11 answers a misspelt command with "A subcommand is required". The options before a command
// take no values, so that the first word without a dash is meant as one.
int refuse_unknown_command(const std::vector<Registered>& commands, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.empty() || word.front() == '-') continue;
    std::string names;
    for (const Registered& command : commands) {
      if (command.app->get_name() == word) return kExitPassed;
      names += (names.empty() ? "" : ", ") + command.app->get_name();
    }
    return refuse(fmt::format("there is no command '{}'; there are: {}", word, names));
  }
  return kExitPassed;
}

std::string dashed(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

int run_main(int argc, char** argv) {
  CLI::App app(kDescription, "tenonnx");
  app.footer(kFooter);
  app.set_version_flag("--version", fmt::format("tenonnx {}", version()));
  app.require_subcommand(1);
  app.fallthrough();
  Globals globals;
  app.add_flag("--json", globals.json,
               "Print the result as JSON (documented in docs/reference/json.md)");
  app.add_flag("-q,--quiet", globals.quiet, "No progress and no messages");
  app.add_flag("-v,--verbose", globals.verbose, "Also messages that only help to find a fault");

  std::vector<Registered> commands;
#define TENONNX_COMMAND(name, group_, summary)                      \
  {                                                                 \
    CLI::App* command = app.add_subcommand(dashed(#name), summary); \
    command->group(group_);                                         \
    command->fallthrough();                                         \
    commands.push_back({command, setup_##name(*command, globals)}); \
  }
#include "commands.inc"
#undef TENONNX_COMMAND

  if (const int code = refuse_unknown_command(commands, argc, argv); code != kExitPassed)
    return code;
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    print_help(app.help());
    return kExitPassed;
  } catch (const CLI::CallForAllHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    // CLI11 has exit codes of its own above 100; ours are documented.
    refuse(e.what());
    std::string command = "tenonnx";
    for (const Registered& c : commands)
      if (c.app->parsed()) command += " " + c.app->get_name();
    fmt::print(stderr, "Run '{} --help' for the options.\n", command);
    return kExitBadInput;
  }
  connect_log(globals);
  for (const Registered& c : commands)
    if (c.app->parsed()) return c.run();
  return kExitBadInput;
}

}  // namespace
}  // namespace tenonnx::cli

int main(int argc, char** argv) {
  tenonnx::cli::open_closed_streams();
  tenonnx::cli::keep_output_for_results();
  // A reader that closes early ("tenonnx inspect m.onnx | head") is not an error of ours.
  std::signal(SIGPIPE, SIG_DFL);
  tenonnx::cli::wait_for_interrupts();
  int code = tenonnx::cli::kExitBadInput;
  try {
    code = tenonnx::cli::check_output(tenonnx::cli::run_main(argc, argv));
  } catch (const std::bad_alloc&) {
    tenonnx::cli::refuse("out of memory");
  } catch (const std::exception& e) {
    tenonnx::cli::refuse(fmt::format(
        "unexpected: {} (a defect of tenonnx: please report it with the command line)", e.what()));
  }
  tenonnx::cli::end_interrupts();
  return code;
}
