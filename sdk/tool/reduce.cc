// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <regex.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "hlo/base/json.h"
#include "hlo/base/temporary_folder.h"
#include "hlo/testing/reduce_module.h"
#include "hlo/text/printer.h"
#include "sdk/tool/support/files.h"
#include "sdk/tool/support/interrupts.h"
#include "sdk/tool/support/option_types.h"
#include "sdk/tool/support/read_module.h"
#include "sdk/tool/support/task.h"
#include "sdk/tool/support/terminal.h"
#include "sdk/tool/support/try_command.h"
#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

struct Options {
  std::string file, test, output, json, match, exit;
  std::vector<std::string> command;
  double timeout = 60;
  bool hang = false;
};

constexpr uint64_t kMostExitCode = 255;

class Pattern {
 public:
  Pattern() = default;
  ~Pattern() {
    if (set_) regfree(&regex_);
  }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  Status compile(const std::string& text) {
    const int error = regcomp(&regex_, text.c_str(), REG_EXTENDED | REG_NOSUB | REG_NEWLINE);
    if (error == 0) {
      set_ = true;
      return ok_status();
    }
    char message[256];
    regerror(error, &regex_, message, sizeof message);
    return invalid_argument(fmt::format("--match {}: {}", text, message));
  }
  bool set() const { return set_; }
  bool matches(const std::string& text) const { return regexec(&regex_, text.c_str(), 0, nullptr, 0) == 0; }

 private:
  regex_t regex_{};
  bool set_ = false;
};

/// Runs the command on a program, and returns whether the fault shows.
class Tester {
 public:
  explicit Tester(const Options& options) : options_(options) {}

  Status begin() {
    if (folder_.path().empty()) return resource_exhausted("no folder for the programs to try can be made");
    path_ = folder_.path() + "/program.hlo";
    if (!options_.match.empty()) COLLET_TRY(pattern_.compile(options_.match));
    if (!options_.exit.empty() && options_.exit != "any")
      code_ = static_cast<int>(parse_whole_number(options_.exit).value_or(0));
    return ok_status();
  }

  Expected<CommandOutcome> run(const hlo::Module& module) {
    COLLET_TRY(write_file(path_, hlo::print_module(module)));
    // A command that runs a program through Collet writes its plan to this file.
    std::error_code ignored;
    std::filesystem::remove(plan_path(), ignored);
    return try_command(arguments(), options_.timeout, [] { return Interrupts::signal() != 0; },
                       {"COLLET_EXPLAIN=" + plan_path()});
  }

  /// Returns the plan of the last run, as `collet run --explain` shows it; empty if there is none.
  std::string last_plan() const {
    std::ifstream file(plan_path());
    return {std::istreambuf_iterator<char>(file), {}};
  }

  bool is_fault(const CommandOutcome& outcome) {
    if (outcome.stopped) return false;
    if (outcome.timed_out) return options_.hang;
    if (options_.hang) return false;
    if (pattern_.set() && !pattern_.matches(outcome.output)) return false;
    if (code_) return outcome.code == *code_;
    if (pattern_.set() && options_.exit.empty()) return true;
    if (outcome.code == 0) return false;
    if (options_.exit.empty()) code_ = outcome.code;  // smaller programs must fail with the same exit code
    return true;
  }

  std::string how() const {
    if (options_.hang) return fmt::format("runs past {} s", options_.timeout);
    if (pattern_.set()) return "says what --match asks for";
    return code_ ? fmt::format("ends with code {}", *code_) : std::string("ends with a code other than 0");
  }

 private:
  std::vector<std::string> arguments() const {
    if (!options_.test.empty()) return {"/bin/sh", "-c", with_path(options_.test, true)};
    std::vector<std::string> out;
    bool named = false;
    for (const std::string& argument : options_.command) {
      out.push_back(with_path(argument, false));
      named |= out.back() != argument;
    }
    if (!named) out.push_back(path_);
    return out;
  }

  std::string plan_path() const { return folder_.path() + "/plan.txt"; }

  std::string with_path(std::string text, bool append) const {
    bool named = false;
    for (size_t at = 0; (at = text.find("{}", at)) != std::string::npos; at += path_.size()) {
      text.replace(at, 2, path_);
      named = true;
    }
    return named || !append ? text : text + " " + path_;
  }

  const Options& options_;
  TemporaryFolder folder_;  // for the program being tried
  std::string path_;
  Pattern pattern_;
  std::optional<int> code_;
};

std::string output_of(const Options& options) {
  if (!options.output.empty()) return options.output;
  if (options.file == "-") return "-";
  const std::filesystem::path path(options.file);
  return (path.parent_path() / (path.stem().string() + ".reduced.hlo")).string();
}

// Reads the result back, and checks that it is the module and that the command still fails on it.
Status check_result(const std::string& path, const hlo::Module& module, Tester& tester) {
  const hlo::Module* result = &module;
  std::unique_ptr<hlo::Module> again;
  if (path != "-") {
    COLLET_ASSIGN(again, read_module(path));
    result = again.get();
  }
  COLLET_ASSIGN(const CommandOutcome outcome, tester.run(*result));
  if (!outcome.stopped && !tester.is_fault(outcome))
    return internal_error("the command does not fail on the result when it is run once more: it is not reliable");
  return ok_status();
}

// Returns the ops that a plan launches on the device, one in each line as in the plan: "add 's' f32[4]".
std::vector<std::string> device_ops_of(const std::string& plan) {
  std::vector<std::string> out;
  std::istringstream lines(plan);
  std::string line, device;
  size_t launch = std::string::npos;  // indentation of the launch whose ops follow
  while (std::getline(lines, line)) {
    const size_t indent = line.find_first_not_of(' ');
    if (indent == std::string::npos) continue;
    const std::string text = line.substr(indent);
    if (const size_t on = text.rfind("' on "); text.starts_with("plan for '") && on != std::string::npos) {
      device = text.substr(on + 5, text.find(" (", on) - on - 5);
      out.clear();  // if there are several programs, only the last one's ops are returned
    }
    if (text.starts_with("launch ")) {
      const size_t on = text.find(" on ");
      launch =
          on != std::string::npos && text.compare(on + 4, device.size() + 1, device + ":") == 0 ? indent : text.npos;
    } else if (launch != std::string::npos && indent > launch) {
      out.push_back(text);
    } else {
      launch = std::string::npos;
    }
  }
  return out;
}

struct Outcome {
  size_t before = 0, after = 0, tried = 0, kept = 0;
  bool stopped = false;
  std::vector<std::string> device_ops = {};  ///< ops that ran on the device in the last failing run
};

Status tell(const Options& options, const std::string& output, const Outcome& told, const Tester& tester) {
  show(stderr, "{} instructions of {} are left, in {}; the command {} ({} tries, {} of them smaller{})\n", told.after,
       told.before, output == "-" ? "stdout" : output, tester.how(), told.tried, told.kept,
       told.stopped ? "; interrupted" : "");
  if (!told.device_ops.empty()) show(stderr, "on the device in the last failing run:\n");
  for (const std::string& op : told.device_ops) show(stderr, "  {}\n", op);
  if (options.json.empty()) return ok_status();
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("file", options.file).field("output", output).field("before", told.before);
  json.field("after", told.after).field("tried", told.tried).field("kept", told.kept);
  json.field("interrupted", told.stopped).key("device_ops").begin_array();
  for (const std::string& op : told.device_ops) json.value(op);
  json.end_array().end_object();
  return write_file(options.json, out + "\n");
}

int reduce(const Options& options) {
  if (options.test.empty() == options.command.empty())
    return report(kUsage, "reduce: say what fails, by --test CMD or by -- CMD\nSee: collet reduce --help");
  const std::string output = output_of(options);
  if (const Status status = check_writable(output); !status.ok()) return report(status);
  Tester tester(options);
  if (const Status status = tester.begin(); !status.ok()) return report(status);
  Expected<std::unique_ptr<hlo::Module>> module = read_module(options.file);
  if (!module.ok()) return report(module.status());

  const Interrupts interrupts;
  Status failure;
  const size_t before = (*module)->instruction_count();
  Progress progress("reducing", before);
  hlo::testing::ReduceOptions reduce;
  reduce.stop = [&] { return Interrupts::signal() != 0 || !failure.ok(); };
  reduce.fails = [&](const hlo::Module& candidate) {
    const Expected<CommandOutcome> outcome = tester.run(candidate);
    if (!outcome.ok()) failure = outcome.status();
    return outcome.ok() && tester.is_fault(*outcome);
  };
  reduce.progress = [&](const hlo::testing::ReduceProgress& p) {
    progress.update(before - std::min(before, p.instructions),
                    fmt::format("{} left, {}, {} tries", p.instructions, p.step, p.tried));
  };
  reduce.smaller = [&](const hlo::Module& smaller) {
    if (output != "-" && failure.ok()) failure = write_file(output, hlo::print_module(smaller));
  };
  begin_task("reducing '" + options.file + "'");
  const auto result = hlo::testing::reduce_module(**module, reduce);
  progress.finish();
  if (!failure.ok()) return report(failure);
  if (!result.ok() && Interrupts::signal() != 0)
    return report(kRuntime, "interrupted before it was known whether the command fails on " + options.file);
  if (!result.ok()) return report(kFailed, result.status().message());
  if (const Status status = write_file(output, hlo::print_module(*result->module)); !status.ok()) return report(status);
  if (const Status status = check_result(output, *result->module, tester); !status.ok())
    return report(kRuntime, status.message());
  const Outcome told{before,          result->module->instruction_count(), result->tried, result->kept,
                     result->stopped, device_ops_of(tester.last_plan())};
  const Status status = tell(options, output, told, tester);
  return status.ok() ? kDone : report(status);
}

constexpr char kFooter[] = R"(Leaves out instructions, bodies, results and parameters and makes sizes and
constants small, as long as the command fails as it does for FILE. What is tried
is always a valid program. The smallest so far is kept in the output file, also
when interrupted.

Examples:
  collet reduce model.hlo -- collet run {} --backend acme --no-fallback
  collet reduce model.hlo --test './compare.sh {}' --timeout 10
  collet reduce model.hlo --match 'assertion .* failed' -- ./compiler {}
  collet reduce model.hlo --hang --timeout 5 -- ./compiler {})";

}  // namespace

Action add_reduce(CLI::App& verb) {
  auto options = std::make_shared<Options>();
  verb.add_option("FILE", options->file, "The program; - is stdin")->required()->type_name("FILE");
  auto* test = verb.add_option("--test", options->test, "The command, for the shell; {} is the program to try")
                   ->type_name("CMD");
  verb.add_option("COMMAND", options->command, "Behind --: the command and its arguments")
      ->excludes(test)
      ->type_name("CMD");
  verb.add_option("--exit", options->exit,
                  "The exit code that is the fault, or any other than 0 [as FILE itself ends]; 128 + the signal for a "
                  "crash")
      ->check([](const std::string& text) {
        const bool code = parse_whole_number(text).value_or(kMostExitCode + 1) <= kMostExitCode;
        return code || text == "any" ? std::string() : "is no exit code, nor any: " + text;
      })
      ->type_name("CODE");
  verb.add_option("--match", options->match, "A pattern (extended regular expression) that the output has to have")
      ->type_name("PATTERN");
  add_seconds_option(verb, "--timeout", options->timeout, "Seconds for each try", 0.01)->default_str("60");
  verb.add_flag("--hang", options->hang, "The fault is that the command does not end in time");
  verb.add_option("-o,--output", options->output,
                  "Where to write the result; - is stdout [beside FILE: x.reduced.hlo of x.hlo]")
      ->type_name("FILE");
  verb.add_option("--json", options->json, "Write the counts as JSON to this file; - is stdout")->type_name("FILE");
  verb.footer(kFooter);
  return [options] { return reduce(*options); };
}

}  // namespace collet::tool
