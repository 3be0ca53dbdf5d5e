// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "hlo/base/files.h"
#include "hlo/base/json.h"
#include "sdk/tool/support/backend_choice.h"
#include "sdk/tool/support/elided.h"
#include "sdk/tool/support/files.h"
#include "sdk/tool/support/inputs.h"
#include "sdk/tool/support/option_types.h"
#include "sdk/tool/support/task.h"
#include "sdk/tool/support/terminal.h"
#include "sdk/tool/support/tune_search.h"
#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

using conformance::Session;

struct Options {
  std::vector<std::string> files, inputs;
  conformance::BackendChoice backend;
  ElidedChoice elided;
  std::string output = "tuning.txt", json;
  SearchOptions search;
  double seconds = 600;
  unsigned least_percent = 3;
};

/// A program and what was found for it.
struct Found {
  std::string file;
  SearchResult result;
};

std::string journal_of(const Options& options) {
  return options.output + ".journal";
}

void print_found(const Found& found) {
  const Style style = stdout_style();
  const SearchResult& r = found.result;
  const std::string counts = fmt::format(
      "{} schedules measured{}{}{}", r.measured, r.wrong ? fmt::format(", {} wrong", r.wrong) : "",
      r.crashed ? fmt::format(", {} that crash", r.crashed) : "", r.is_exhausted ? ", none left near the best" : "");
  if (r.kernels.empty()) {
    show("{}{}{}: {}, no schedule is faster than those of the rules; {}\n", style.bold, found.file, style.reset,
         human_seconds(r.before_ns * 1e-9), counts);
    return;
  }
  show("{}{}{}: {} -> {}, {:.2f} times as fast; {}\n", style.bold, found.file, style.reset,
       human_seconds(r.before_ns * 1e-9), human_seconds(r.after_ns * 1e-9), r.before_ns / r.after_ns, counts);
  for (const Improvement& k : r.kernels)
    show("  {:<12} {:>9} -> {:>9}  {:.2f}x  {}\n", k.name, human_seconds(k.before_ns * 1e-9),
         human_seconds(k.after_ns * 1e-9), k.before_ns / k.after_ns, k.schedule);
}

std::string as_json(const Options& options, const std::vector<Found>& all) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("backend", options.backend.name).field("output", options.output);
  json.field("seed", options.search.seed).key("programs").begin_array();
  for (const auto& [file, r] : all) {
    json.begin_object().field("program", file).field("before_ns", r.before_ns).field("after_ns", r.after_ns);
    json.field("measured", uint64_t{r.measured}).field("wrong", uint64_t{r.wrong});
    json.field("refused", uint64_t{r.refused}).field("crashed", uint64_t{r.crashed});
    json.field("exhausted", r.is_exhausted).key("kernels").begin_array();
    for (const Improvement& k : r.kernels) {
      json.begin_object().field("name", k.name).field("key", k.key).field("schedule", k.schedule);
      json.field("before_ns", k.before_ns).field("after_ns", k.after_ns).end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return out + "\n";
}

/// Tunes one program; the tuned file is written when something is found.
Expected<SearchResult> tune_program(const Options& options, const std::string& file, double seconds) {
  begin_task(fmt::format("reading '{}'", file));
  TunedProgram program{
      file, {}, options.backend, {.file = file, .elided = options.elided.how, .seed = options.elided.seed}};
  program.alive = [journal = journal_of(options)] {
    std::error_code ignored;
    std::filesystem::last_write_time(journal, std::filesystem::file_time_type::clock::now(), ignored);
  };
  COLLET_ASSIGN(program.bytes, read_program(file));
  begin_task(fmt::format("tuning '{}' on {}", file, options.backend.name));
  ScheduleList list;
  std::vector<hlo::Literal> inputs;
  {
    COLLET_ASSIGN(const std::unique_ptr<Variant> first, Variant::compile(program, {}, &list));
    COLLET_ASSIGN(inputs, make_inputs(options.inputs, file, first->program().arguments()));
  }
  COLLET_ASSIGN(TunedFile tuned, TunedFile::read(options.output, list.target));
  COLLET_ASSIGN(Journal journal, Journal::open(journal_of(options), list.target));
  SearchOptions search = options.search;
  search.seconds = seconds;
  Progress bar("tune", 1000);
  const SearchProgress progress = [&](double share, const std::string& note) {
    bar.update(static_cast<size_t>(share * 1000), file + ": " + note);
    // What was found so far is kept if the process ends.
    if (const Status written = tuned.write(options.output); !written.ok()) bar.update(0, written.message());
  };
  auto result = search_schedules(program, inputs, search, journal, tuned, progress);
  bar.finish();
  COLLET_TRY(tuned.write(options.output));
  return result;
}

int search_all(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Found> all;
  int code = kDone;
  bool found_any = false;
  for (size_t i = 0; i < options.files.size(); ++i) {
    const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double left = std::max(options.seconds - passed, 0.0) / static_cast<double>(options.files.size() - i);
    auto result = tune_program(options, options.files[i], left);
    if (!result.ok()) {
      code = report(result.status());
      continue;
    }
    all.push_back({options.files[i], std::move(*result)});
    found_any = found_any || !all.back().result.kernels.empty();
    if (options.json != "-") print_found(all.back());
  }
  if (options.json != "-" && found_any)
    show("written to '{}'; the cpu backend takes it by --option tuning={} or COLLET_CPU_TUNING\n", options.output,
         options.output);
  if (!options.json.empty()) {
    if (const Status status = write_file(options.json, as_json(options, all)); !status.ok()) return report(status);
  }
  return code;
}

/// Returns when a child process ends, or has neither measured nor compiled anything for so long that it hangs: then it has not touched the
/// journal.
int wait_for(pid_t child, const std::string& journal) {
  constexpr auto kLongest = std::chrono::seconds(120);
  const auto touched = [&] {
    std::error_code error;
    return std::filesystem::last_write_time(journal, error);
  };
  auto last = touched();
  auto since = std::chrono::steady_clock::now();
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) return 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const auto now = std::chrono::steady_clock::now();
    if (const auto time = touched(); time != last) {
      last = time;
      since = now;
    }
    if (now - since > kLongest) kill(child, SIGKILL);
  }
}

/// Searches in a child process, because a schedule may crash a backend. If it ends by a signal the journal knows what was
/// being measured, and another child goes on without it.
int run(Options options) {
  if (const Status status = check_writable(options.json); !status.ok()) return report(status);
  if (const Status status = check_writable(options.output); !status.ok()) return report(status);
  options.search.least_gain = options.least_percent / 100.0;
  constexpr int kMostChildren = 100;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kMostChildren; ++i) {
    const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const pid_t child = fork();
    if (child < 0) return report(system_error("fork", errno));
    if (child == 0) {
      options.seconds = std::max(options.seconds - passed, 0.0);
      const int code = search_all(options);
      std::fflush(nullptr);
      _exit(code);
    }
    const int status = wait_for(child, journal_of(options));
    if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
    const int signal = WTERMSIG(status);
    if (signal == SIGINT || signal == SIGTERM) return 128 + signal;
    show(stderr, "collet: a schedule ended the process by signal {}; going on without it\n", signal);
  }
  return report(kRuntime, "too many schedules end the process");
}

constexpr char kFooter[] =
    R"(What was measured is kept in OUTPUT.journal: the same command goes on where it ended. Results are compared with those
of the program without schedules; what differs is never kept.

Examples:
  collet tune model.hlo
  collet tune a.hlo b.hlo --time 1200 --output acme.txt --backend ./libacme.so
  collet run model.hlo --option tuning=tuning.txt)";

}  // namespace

Action add_tune(CLI::App& verb) {
  auto options = std::make_shared<Options>();
  verb.add_option("FILE", options->files, "Programs")->type_name("FILE")->required();
  add_backend_options(verb,
                      {"The backend, one that uses Collet::codegen: by name or path",
                       "Do without the fallback: what the backend declines is an error"},
                      options->backend);
  verb.add_option("--inputs", options->inputs, "rule, random:SEED, zeros, or raw files, as for run")
      ->check(CLI::Validator(check_inputs_word, ""))
      ->type_name("WHAT")
      ->expected(1, -1);
  add_elided_option(verb, options->elided);
  verb.add_option("--output", options->output, "The file of tuned schedules, which is added to (default: tuning.txt)")
      ->type_name("FILE");
  add_seconds_option(verb, "--time", options->seconds, "Search for about so long, in all (default: 600)", 1);
  add_seconds_option(verb, "--measure", options->search.measure_seconds,
                     "Measure each schedule for so long (default: 0.1)", 0.001);
  add_number_option(verb, "--least", options->least_percent,
                    "Keep what is at least so many percent faster (default: 3)", 1u, 100u);
  add_number_option(verb, "--seed", options->search.seed, "Order of the schedules", uint64_t{0});
  verb.add_option("--json", options->json, "Write what was found as JSON to this file; - is stdout")->type_name("FILE");
  verb.footer(kFooter);
  return [options] { return run(*options); };
}

}  // namespace collet::tool
