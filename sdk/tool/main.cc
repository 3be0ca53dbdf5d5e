// SPDX-License-Identifier: Apache-2.0
#include <collet/collet.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "hlo/base/no_memory.h"
#include "sdk/tool/support/crash.h"
#include "sdk/tool/support/help.h"
#include "sdk/tool/support/installation.h"
#include "sdk/tool/support/option_types.h"
#include "sdk/tool/support/task.h"
#include "sdk/tool/support/terminal.h"
#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

constexpr Verb kVerbs[] = {
#define COLLET_VERB(name, summary) {#name, summary, add_##name},
#include "sdk/tool/verbs.def"
};

constexpr char kFooter[] =
    "Exit codes: 0 done, 1 the thing tested failed, 2 wrong usage, 3 input refused,\n"
    "4 a backend or the system failed, 5 not done in the time of --timeout.\n"
    "Backends are found by name in the folders of COLLET_BACKEND_PATH and in the\n"
    "installed one, or by path.\n"
    "`collet VERB --help` has the options of a verb, with examples.";

Exit exit_code(Code code) {
  switch (code) {
    case Code::Ok:
      return kDone;
    case Code::InvalidArgument:
    case Code::OutOfRange:
    case Code::DataLoss:
      return kRefused;
    default:
      return kRuntime;
  }
}

// Flushes the output. If that fails, the verb has failed; a verb that failed before has already printed why.
int finish(int code) {
  const bool failed_before = std::ferror(stdout) != 0;
  const bool flushed = std::fflush(stdout) == 0;
  const std::string why = flushed ? "" : std::string(": ") + std::strerror(errno);
  if (code >= kUsage || (flushed && !failed_before)) return code;
  return report(kRuntime, "stdout cannot be written" + why);
}

int print_folder(const std::filesystem::path& folder) {
  if (folder.empty())
    return report(kRuntime, "there is no such folder beside this program: it was moved away from its installation");
  std::fputs((folder.string() + "\n").c_str(), stdout);
  return kDone;
}

int run(int argc, char** argv) {
  CLI::App app("Collet runs XLA's programs on any accelerator that has a backend.", "collet");
  app.formatter(std::make_shared<HelpFormatter>());
  app.get_formatter()->label("SUBCOMMAND", "VERB");
  app.set_version_flag("--version", std::string("collet ") + collet_version(), "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  bool print_prefix = false, print_cmake_dir = false;
  CLI::Option* const prefix_flag = app.add_flag("--prefix", print_prefix, "Print Collet's folder and exit");
  app.add_flag("--cmake-dir", print_cmake_dir, "Print CMake's folder, for -DCMAKE_PREFIX_PATH=, and exit")
      ->excludes(prefix_flag);
  app.footer(kFooter);
  app.failure_message([](const CLI::App* where, const CLI::Error& error) {
    const auto verbs = where->get_subcommands();
    const std::string of = verbs.empty() ? "" : " " + verbs.front()->get_name();
    return "collet: " + printable(error.what()) + "\nSee: collet" + of + " --help\n";
  });
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Verb& verb : verbs()) {
    CLI::App* sub = app.add_subcommand(verb.name, verb.summary);
    sub->group("Verbs");
    actions.emplace_back(sub, verb.add(*sub));
    refuse_empty_values(*sub);
  }
  app.require_subcommand(0, 1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Output of CLI11 is printed with stdio too, so that a failure to write is detected in one place.
    std::ostringstream out;
    const int code = app.exit(error, out, std::cerr);
    std::fputs(out.str().c_str(), stdout);
    return finish(code == 0 ? kDone : kUsage);
  }
  if (print_prefix || print_cmake_dir) {
    if (!app.get_subcommands().empty()) return report(kUsage, "--prefix and --cmake-dir go with no verb");
    return finish(print_folder(print_prefix ? prefix() : config_folder()));
  }
  for (const auto& [verb, action] : actions) {
    if (!verb->parsed()) continue;
    begin_task("doing '" + verb->get_name() + "'");
    return finish(action());
  }
  std::fputs(app.help().c_str(), stderr);
  return kUsage;
}

}  // namespace

std::span<const Verb> verbs() {
  return kVerbs;
}

int report(Exit code, std::string_view message) {
  const Style style = stderr_style();
  while (message.ends_with('\n')) message.remove_suffix(1);
  show(stderr, "{}collet:{} {}\n", style.red, style.reset, message);
  return code;
}

int report(const Status& status) {
  return report(exit_code(status.code()), status.to_string());
}

}  // namespace collet::tool

namespace {

int run_reporting(int argc, char** argv) {
  try {
    return collet::tool::run(argc, argv);
  } catch (const std::bad_alloc& error) {
    return collet::tool::report(collet::tool::kRuntime,
                                collet::memory_message(error) + ", " + collet::tool::current_task());
  } catch (const std::exception& error) {
    return collet::tool::report(collet::tool::kRuntime, error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  collet::tool::begin_watch();
  const int code = run_reporting(argc, argv);
  collet::tool::expect_end();
  return code;
}
