// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/corpus/corpus.h"
#include "conformance/mutants/kill.h"
#include "conformance/report/bundle.h"
#include "conformance/report/registry.h"
#include "conformance/report/report.h"
#include "conformance/runner/case_file.h"
#include "conformance/runner/conform.h"
#include "conformance/runner/profiles.h"
#include "conformance/runner/workers.h"
#include "hlo/base/files.h"
#include "hlo/base/shell.h"
#include "hlo/base/temporary_folder.h"
#include "sdk/tool/support/backend_choice.h"
#include "sdk/tool/support/files.h"
#include "sdk/tool/support/interrupts.h"
#include "sdk/tool/support/option_types.h"
#include "sdk/tool/support/processes.h"
#include "sdk/tool/support/terminal.h"
#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

namespace suite = collet::conformance;

struct Options {
  suite::BackendChoice backend;
  std::vector<std::string> filters, profiles, claims, diff, earlier, from;
  std::string revision, corpus, json, junit, html, shard, resume, bundle, verify, rerun, badge, speed, save_cases,
      case_file, beside, registry, waivers;
  uint64_t seed = 0, memory_mib = 0;
  unsigned jobs = 1;
  double timeout = 0, fuzz = 0, soak = 0;
  size_t most_failures = 20;
  unsigned batch = 1;
  bool full = false, list = false, worker = false, show = false, mutants = false, independent_only = false;
  bool has_backend = false, has_seed = false, has_processes = false;  ///< were given
  ProcessChoice processes;
};

constexpr uint64_t kMostMib = uint64_t{1} << 40;  // far more than a machine has, and its bytes can be counted

// Returns the memory limit of a worker: its share of four fifths of the machine's memory.
uint64_t memory_share(const Options& options) {
  if (options.memory_mib > 0) return options.memory_mib << 20;
  const auto machine = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return machine / 5 * 4 / std::max(options.jobs, 1u);
}

Status read_shard(const Options& options, suite::ConformOptions& run) {
  if (options.shard.empty()) return ok_status();
  const std::string_view text = options.shard;
  const size_t slash = std::min(text.find('/'), text.size() - 1);
  const auto index = parse_whole_number(text.substr(0, slash)), count = parse_whole_number(text.substr(slash + 1));
  if (!index || !count || *index >= *count || *count > UINT32_MAX)
    return invalid_argument("--shard " + options.shard + ": write i/n, with i from 0 to n-1");
  run.shard = static_cast<unsigned>(*index);
  run.shards = static_cast<unsigned>(*count);
  return ok_status();
}

Status check_profiles(const Options& options) {
  for (const std::string& name : options.profiles)
    if (suite::find_profile(name) == nullptr)
      return invalid_argument("--profile " + name + ": there are " + suite::profile_names());
  for (const std::string& name : options.claims) COLLET_TRY(suite::read_claims(name).status());
  return ok_status();
}

Status write_reports(const Options& options, const suite::ConformReport& report, const suite::PageExtras& extras) {
  if (!options.json.empty()) COLLET_TRY(write_file(options.json, suite::report_json(report, options.backend)));
  if (!options.junit.empty()) COLLET_TRY(write_file(options.junit, suite::report_junit(report, options.backend)));
  if (!options.badge.empty()) COLLET_TRY(write_file(options.badge, suite::report_badge(report)));
  if (!options.html.empty()) COLLET_TRY(write_file(options.html, suite::report_html(report, options.backend, extras)));
  return ok_status();
}

Status write_bundle(const Options& options, const suite::ConformReport& report, const suite::ConformOptions& run) {
  if (options.bundle.empty()) return ok_status();
  COLLET_ASSIGN(const std::string text, suite::bundle_text(report, run));
  return write_file(options.bundle, text);
}

// Checks before the cases run that all report files can be written.
Status check_reports(const Options& options) {
  for (const std::string* path : {&options.json, &options.junit, &options.html, &options.bundle, &options.badge})
    COLLET_TRY(check_writable(*path));
  return ok_status();
}

suite::ProgressFunction progress_on(std::unique_ptr<Progress>& bar, const std::string& what) {
  return [&bar, what](size_t done, size_t total, std::string_view name) {
    if (!bar) bar = std::make_unique<Progress>(what, total);
    bar->update(done, name);
  };
}

// Returns a function that prints the first `most` failures as they occur, so that a run in which everything fails does
// not look like one that hangs.
std::function<void(const suite::CaseResult&)> failures_on(std::unique_ptr<Progress>& bar, size_t most) {
  return [&bar, most, shown = size_t{0}](const suite::CaseResult& one) mutable {
    if (shown == most) return;
    if (bar) bar->finish();
    const Style style = stderr_style();
    constexpr size_t kMostText = 200;
    std::string detail = one.detail.substr(0, std::min(one.detail.find('\n'), kMostText));
    if (detail.size() < one.detail.size()) detail += " ...";
    show(stderr, "{}{}{} {}: {}\n", style.red, suite::outcome_name(one.outcome), style.reset, one.name, detail);
    if (++shown == most) show(stderr, "collet: further failures stand in the report\n");
  };
}

// Prints a report. Its last line, the verdict, is coloured.
void print_report(std::string_view text, bool good) {
  const Style style = stdout_style();
  const size_t last = text.find_last_of('\n', text.empty() ? 0 : text.size() - 2);
  const size_t start = last == std::string_view::npos ? 0 : last + 1;
  const std::string_view verdict = text.substr(start, text.find_last_not_of('\n') + 1 - start);
  show("{}{}{}{}{}\n", text.substr(0, start), style.bold, good ? style.green : style.red, verdict, style.reset);
}

// Writes a report to the file of --json, or prints it where that is not stdout. `json` and `text` return its forms.
template <typename Json, typename Text>
int conclude(const Options& options, const Json& json, const Text& text, bool good) {
  if (!options.json.empty()) {
    if (const Status status = write_file(options.json, json()); !status.ok()) return report(status);
  }
  if (options.json != "-") print_report(text(), good);
  return good ? kDone : kFailed;
}

int run_corpus(const Options& options) {
  suite::CorpusOptions run;
  run.backend = options.backend;
  run.path = options.corpus;
  run.filters = options.filters;
  run.jobs = options.jobs;
  run.timeout = options.timeout;
  run.memory_bytes = memory_share(options);
  if (options.worker) return suite::serve_corpus(run);
  if (options.list) {
    const Expected<std::vector<suite::CorpusEntry>> entries = suite::list_corpus(options.corpus);
    if (!entries.ok()) return report(kUsage, entries.status().message());
    for (const auto& entry : *entries) show("{} {}\n", suite::expectation_name(entry.expect), entry.name);
    return kDone;
  }
  std::unique_ptr<Progress> bar;
  run.progress = progress_on(bar, "corpus");
  const Expected<suite::CorpusReport> result = suite::run_corpus(run);
  bar.reset();
  if (!result.ok()) {
    report(result.status());
    return result.status().code() == Code::NotFound ? kUsage : kRuntime;
  }
  return conclude(
      options, [&] { return suite::corpus_json(*result); },
      [&] { return suite::corpus_text(*result, options.most_failures); }, result->passed());
}

// Makes the cases of the programs of --from, and hands them to the workers in a file in `folder`.
Status take_programs(const Options& options, suite::ConformOptions& run, const TemporaryFolder& folder,
                     suite::ConformReport& report) {
  std::unique_ptr<Progress> bar;
  run.progress = progress_on(bar, "programs");
  Expected<suite::ProgramCases> made = suite::cases_of_programs(run, options.from);
  bar.reset();
  COLLET_TRY(made.status());
  run.cases = std::move(made->cases);
  report.programs = std::move(made->notes);
  report.unread = std::move(made->unread);
  report.origins = std::move(made->origins);
  if (!options.save_cases.empty()) {
    std::vector<suite::Case> ops = run.cases;
    std::erase_if(ops, [](const suite::Case& one) { return !one.program.empty(); });
    COLLET_TRY(write_file(options.save_cases, suite::case_file_text(ops)));
  }
  run.case_file = folder.path() + "/cases";
  return write_file(run.case_file, suite::case_file_text(run.cases));
}

// True if the run has the contract case that fails where the text of a pattern cannot be read.
bool has_case_of_patterns(const suite::ConformOptions& run) {
  const std::vector<suite::Case> cases = suite::chosen_cases(run, false);
  return std::any_of(cases.begin(), cases.end(),
                     [](const suite::Case& one) { return one.name == "contract/tables/patterns"; });
}

int run_cases(const Options& options, std::vector<suite::Waiver> waivers) {
  suite::ConformOptions run;
  run.waivers = std::move(waivers);
  run.backend = options.backend;
  run.filters = options.filters;
  run.seed = options.seed;
  run.full = options.full;
  run.profiles = options.profiles;
  run.claims = options.claims;
  run.resume = options.resume;
  run.independent_only = options.independent_only;
  run.batch = options.batch;
  run.fuzz_seconds = options.fuzz;
  run.soak_seconds = options.soak;
  run.jobs = options.jobs;
  if (options.timeout > 0) run.timeout = run.program_timeout = options.timeout;
  run.case_file = options.case_file;
  run.beside = options.beside;
  run.memory_bytes = memory_share(options);
  if (options.has_processes) {
    run.processes = options.processes.count;
    run.process = options.processes.number;
    run.store = options.processes.store;
    run.backend.devices = std::max(run.backend.devices, 1u);
  }
  if (const Status status = read_shard(options, run); !status.ok()) return report(kUsage, status.message());
  if (const Status status = check_profiles(options); !status.ok()) return report(kUsage, status.message());
  if (options.worker) return suite::serve_conformance(run);
  const TemporaryFolder folder;   // of the file of cases
  suite::ConformReport programs;  // what is said of them
  if (!options.from.empty()) {
    const Status status = take_programs(options, run, folder, programs);
    const bool is_usage = status.code() == Code::InvalidArgument || status.code() == Code::NotFound;
    if (!status.ok()) return is_usage ? report(kUsage, status.message()) : report(status);
    if (run.cases.empty()) return report(kRefused, fmt::format("{}", fmt::join(programs.unread, "\n")));
  }
  if (options.from.empty() && options.fuzz == 0 && options.soak == 0 && !options.has_processes) {
    Expected<std::vector<suite::Case>> declared = suite::cases_of_backend(run);
    if (declared.ok()) {
      run.declared = *std::move(declared);
    } else if (const int code = report(declared.status()); !has_case_of_patterns(run)) {
      return code;
    }
  }
  if (options.list || options.show) {
    for (const suite::Case& one : suite::chosen_cases(run, options.show))
      show("{}{}\n", one.name, options.show ? "\n" + one.text : "");
    return kDone;
  }
  suite::PageExtras extras;
  if (!options.speed.empty()) {
    const Expected<std::string> text = read_file(options.speed, uint64_t{1} << 30);
    const Status status = text.ok() ? suite::read_speed(options.speed, *text, extras) : text.status();
    if (!status.ok()) return report(status);
  }
  for (const std::string& path : options.earlier) {
    const Expected<std::string> text = read_file(path, uint64_t{1} << 30);
    const Status status = text.ok() ? suite::read_earlier(path, *text, extras) : text.status();
    if (!status.ok()) return report(status);
  }
  run.explain = !options.html.empty() || !options.json.empty() || !options.from.empty();
  const std::vector<std::string> idle = suite::idle_filters(run);
  for (const std::string& filter : idle)
    show(stderr, "collet: no case matches --filter {}; see --list\n", shell_word(filter));
  if (!idle.empty() && idle.size() == run.filters.size()) return kUsage;
  std::unique_ptr<Progress> bar;
  run.progress = progress_on(bar, "conform");
  run.failed = failures_on(bar, options.most_failures);
  Expected<suite::ConformReport> result = suite::run_conformance(run);
  bar.reset();
  if (result.ok()) {
    result->revision = options.revision;
    result->programs = std::move(programs.programs);
    result->unread = std::move(programs.unread);
    result->from = options.from;
    result->origins = std::move(programs.origins);
    result->told_claims = options.claims;
    result->told_waivers = options.waivers;
    result->told_timeout = options.timeout;
    result->told_memory_mib = options.memory_mib;
  }
  if (!result.ok()) {
    report(result.status());
    return result.status().code() == Code::InvalidArgument ? kUsage : kRuntime;
  }
  if (const Status status = write_reports(options, *result, extras); !status.ok()) return report(status);
  if (const Status status = write_bundle(options, *result, run); !status.ok()) return report(status);
  if (options.json != "-")
    print_report(suite::report_text(*result, options.backend, options.most_failures), result->conforms());
  if (!result->not_kept.ok()) report(result->not_kept);
  if (!result->conforms()) return kFailed;
  if (!result->not_kept.ok()) return kRuntime;
  return result->unread.empty() ? kDone : kRefused;
}

// Tests the suite itself: whether it finds each of the mutants.
int run_mutants(const Options& options) {
  suite::KillOptions run;
  run.filters = options.filters;
  run.jobs = options.jobs;
  run.corpus = options.corpus;
  if (options.list) {
    for (const std::string& name : suite::chosen_mutants(run)) show("{}\n", name);
    return kDone;
  }
  std::unique_ptr<Progress> bar;
  run.progress = progress_on(bar, "mutants");
  const Expected<suite::KillReport> result = suite::run_mutants(run);
  bar.reset();
  if (!result.ok())
    return result.status().code() == Code::Cancelled ? report(result.status())
                                                     : report(kUsage, result.status().message());
  return conclude(
      options, [&] { return suite::kill_json(*result); }, [&] { return suite::kill_text(*result); }, result->good());
}

int diff_runs(const Options& options) {
  std::string texts[2];
  for (size_t i = 0; i < 2; ++i) {
    Expected<std::string> text = read_file(options.diff[i], uint64_t{1} << 30);
    if (!text.ok()) return report(text.status());
    texts[i] = *std::move(text);
  }
  const auto difference =
      suite::diff_reports(options.diff[0], texts[0], options.diff[1], texts[1], options.most_failures);
  if (!difference.ok()) return report(kUsage, difference.status().message());
  if (options.json != "-") show("{}", difference->text);
  if (!options.json.empty()) {
    if (const Status status = write_file(options.json, suite::difference_json(*difference)); !status.ok())
      return report(status);
  }
  if (!options.html.empty()) {
    if (const Status status = write_file(options.html, suite::difference_html(*difference)); !status.ok())
      return report(status);
  }
  return difference->worse ? kFailed : kDone;
}

// Reads a percentage such as "1%" as a share; nullopt for anything else.
std::optional<double> read_share(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  double percent = 0;
  const char* end = text.data() + text.size() - 1;
  const auto [stopped, error] = std::from_chars(text.data(), end, percent);
  if (error != std::errc() || stopped != end || !(percent > 0) || percent > 100) return std::nullopt;
  return percent / 100;
}

int verify(const Options& options, std::vector<suite::Waiver> waivers) {
  suite::VerifyOptions run;
  run.waivers = std::move(waivers);
  run.name = options.verify;
  if (options.has_backend) run.backend = options.backend.name;
  run.backend_options = options.backend.options;
  if (options.has_seed) run.seed = options.seed;
  if (!options.rerun.empty()) {
    const std::optional<double> share = read_share(options.rerun);
    if (!share) return report(kUsage, "--rerun " + options.rerun + ": write a share of the cases, such as 1%");
    run.rerun = *share;
  }
  run.jobs = options.jobs;
  run.timeout = options.timeout;
  run.memory_bytes = memory_share(options);
  Expected<std::string> text = read_file(options.verify, uint64_t{1} << 30);
  if (!text.ok()) return report(text.status());
  run.text = *std::move(text);
  std::unique_ptr<Progress> bar;
  run.progress = progress_on(bar, "verify");
  const Expected<suite::Verification> result = suite::verify_bundle(run);
  bar.reset();
  if (!result.ok()) return report(result.status());
  return conclude(
      options, [&] { return suite::verification_json(*result); },
      [&] { return suite::verification_text(*result, options.most_failures); }, result->holds());
}

// Returns what does not fit to --from; empty if all does.
std::string_view beside_from(const Options& options) {
  if (options.from.empty()) {
    if (!options.save_cases.empty()) return "--save-cases is about --from";
    return options.beside.empty() || options.worker ? "" : "--beside is about --from";
  }
  if (!options.corpus.empty() || options.fuzz > 0 || options.soak > 0 || options.mutants || !options.verify.empty() ||
      !options.diff.empty())
    return "--from is a run of its own; not of --corpus, --fuzz, --soak, --mutants, --verify or --diff";
  if (options.full || !options.profiles.empty() || !options.claims.empty() || !options.bundle.empty())
    return "--from runs the cases of programs; --full, --profile, --claim and --bundle are about the suite's";
  return "";
}

// Returns what does not fit to --corpus; empty if all does.
std::string_view beside_corpus(const Options& options) {
  if (options.corpus.empty() || options.mutants || options.worker) return "";
  if (!options.junit.empty() || !options.html.empty() || !options.badge.empty())
    return "--corpus has a report as text and as --json; not as --junit, --html or --badge";
  if (options.full || !options.profiles.empty() || !options.claims.empty() || options.has_seed || options.batch > 1 ||
      options.independent_only)
    return "--corpus runs programs; --full, --profile, --claim, --seed, --batch and --independent-only are about the "
           "suite's cases";
  if (!options.shard.empty() || !options.resume.empty())
    return "--corpus runs all programs that --filter chooses; not a --shard, nor what --resume has not";
  return "";
}

// Returns what does not fit to --processes; empty if all does.
std::string_view beside_processes(const Options& options) {
  if (!options.has_processes) return options.backend.devices > 0 ? "--devices is about --processes" : "";
  if (!options.from.empty() || !options.corpus.empty() || options.fuzz > 0 || options.soak > 0 || options.mutants ||
      !options.verify.empty() || !options.diff.empty() || !options.registry.empty() || !options.bundle.empty())
    return "--processes runs cases of its own; not of --from, --corpus, --fuzz, --soak, --mutants, --verify, --diff, "
           "--registry or --bundle";
  return options.processes.number >= 0 && !options.worker ? "conform starts its processes itself: no --process" : "";
}

int list_products(const Options& options, const std::vector<suite::Waiver>& waivers) {
  const Expected<suite::Registry> registry = suite::read_registry(options.registry, waivers);
  if (!registry.ok()) return report(kUsage, registry.status().message());
  if (!options.html.empty()) {
    if (const Status status = write_file(options.html, suite::registry_html(*registry)); !status.ok())
      return report(status);
  }
  return conclude(
      options, [&] { return suite::registry_json(*registry); }, [&] { return suite::registry_text(*registry); },
      registry->refused.empty());
}

// Reads the file of --waivers, or returns those that this program was shipped with.
Expected<std::vector<suite::Waiver>> waivers_of(const Options& options) {
  if (options.waivers.empty()) return suite::shipped_waivers();
  COLLET_ASSIGN(const std::string text, read_file(options.waivers, uint64_t{1} << 24));
  return suite::read_waivers(options.waivers, text);
}

int conform_as_told(const Options& options) {
  if (const std::string_view wrong = beside_processes(options); !wrong.empty())
    return report(kUsage, std::string(wrong));
  if (const std::string_view wrong = beside_from(options); !wrong.empty()) return report(kUsage, std::string(wrong));
  if (const std::string_view wrong = beside_corpus(options); !wrong.empty()) return report(kUsage, std::string(wrong));
  if (!options.rerun.empty() && options.verify.empty()) return report(kUsage, "--rerun is about --verify");
  if (!options.bundle.empty() && (!options.corpus.empty() || options.fuzz > 0 || options.soak > 0 || options.mutants))
    return report(kUsage, "--bundle is of a run of the cases; not of --corpus, --fuzz, --soak or --mutants");
  const auto waivers = waivers_of(options);
  if (!waivers.ok()) return report(kUsage, waivers.status().message());
  if (!options.registry.empty()) return list_products(options, *waivers);
  if (!options.verify.empty()) return verify(options, *waivers);
  if (!options.diff.empty()) return diff_runs(options);
  if (options.mutants) {
    if (!options.junit.empty() || !options.html.empty())
      return report(kUsage, "--mutants has a report as text and as --json; not as --junit or --html");
    const Status writable = check_reports(options);
    return writable.ok() ? run_mutants(options) : report(writable);
  }
  if (const Status status = check_reports(options); !status.ok()) return report(status);
  return options.corpus.empty() ? run_cases(options, *waivers) : run_corpus(options);
}

// An interrupt kills the workers and removes temporary files before the process ends.
int conform(const Options& options) {
  if (options.worker) return conform_as_told(options);
  const Interrupts interrupts(suite::interrupt_tasks);
  const int code = conform_as_told(options);
  return Interrupts::signal() == 0 ? code : 128 + Interrupts::signal();
}

constexpr char kFooter[] = R"(Each case runs in a child process: a crash or hang costs one case. Inputs follow
from a case's name and the seed, so that a case alone gets the same ones. Exit
code 1: something failed.

Examples:
  collet conform --backend ./libacme.so --jobs 4 --html report.html
  collet conform --backend acme --no-fallback --filter 'dot/f32/*'
  collet conform --backend acme --filter reduce/f32/add_129_all/unit
  collet conform --backend acme --processes 2 --devices 2 --profile collectives
  collet conform --no-fallback --corpus models --jobs 2 --json out.json
  collet conform --backend acme --from customer.mlir --beside cpu)";

}  // namespace

Action add_conform(CLI::App& verb) {
  auto options = std::make_shared<Options>();
  add_backend_options(
      verb,
      {"The backend to test, by name or path", "Do without the fallback: what the backend declines is unsupported"},
      options->backend);
  verb.add_option("--filter", options->filters, "Run only cases whose name matches this glob; may be repeated")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  verb.add_flag("--list", options->list, "Print the names of the cases, and do nothing else");
  verb.add_flag("--show", options->show, "Print the programs of the cases, and do nothing else");
  verb.add_option("--shard", options->shard, "Run one part of several: i/n, i from 0")->type_name("I/N");
  add_number_option(verb, "--seed", options->seed, "Draw other inputs");
  verb.add_flag("--full", options->full, "All 300,000 cases: every shape for every element type, and the grid");
  verb.add_option("--profile", options->profiles,
                  "Run only cases of this profile; may be repeated. quick takes half a minute on two cores")
      ->type_name("NAME")
      ->allow_extra_args(false);
  verb.add_option("--claim", options->claims,
                  "The backend claims this profile: what the device does not take of it is a failure")
      ->type_name("NAME")
      ->allow_extra_args(false);
  verb.add_option("--resume", options->resume,
                  "Keep results in this file as they come, and go on from what it has of the same run")
      ->type_name("FILE");
  verb.add_option("--corpus", options->corpus,
                  "Run a corpus instead: an index (.jsonl), a folder of models, or of self-checking modules")
      ->type_name("PATH");
  add_process_options(verb, options->processes,
                      "Run the cases of programs with several participants instead, spread over so many processes, and "
                      "faults of a process; each worker is so many processes");
  for (const char* internal : {"--process", "--store"}) verb.get_option(internal)->group("");
  add_number_option(verb, "--devices", options->backend.devices,
                    "With --processes: devices of each process; 1 unless told", 0u, 64u);
  add_number_option(verb, "--jobs,-j", options->jobs, "Worker processes", 1u, 512u)->default_str("1");
  add_seconds_option(verb, "--timeout", options->timeout,
                     "Seconds a case may take; 20, or 120 for a model of a corpus");
  add_number_option(verb, "--memory", options->memory_mib, "MiB of memory a worker may have", uint64_t{0}, kMostMib)
      ->type_name("MIB");
  add_number_option(verb, "--failures", options->most_failures, "Failures to show, at most")
      ->default_str(std::to_string(options->most_failures));
  verb.add_option("--json", options->json, "Write the report as JSON to this file; - is stdout")->type_name("FILE");
  verb.add_option("--html", options->html, "Write the report as a web page to this file")->type_name("FILE");
  verb.add_option("--badge", options->badge, "Write a picture of the verdict to this file, SVG")->type_name("FILE");
  verb.add_option("--speed", options->speed, "Show what collet bench --json has written in the web page")
      ->type_name("FILE");
  verb.add_option("--junit", options->junit, "Write the report as JUnit's XML to this file")->type_name("FILE");
  verb.add_option(
          "--from", options->from,
          "Run the cases of these programs instead: files of any form, folders of them, or files of --save-cases")
      ->type_name("PROGRAM");
  verb.add_option("--save-cases", options->save_cases,
                  "With --from: keep the cases of ops in this file, which --from takes in place of the programs")
      ->type_name("FILE");
  verb.add_option("--beside", options->beside, "With --from: another backend, to compare the time of each op with")
      ->type_name("BACKEND");
  add_seconds_option(
      verb, "--fuzz", options->fuzz,
      "Run random programs for so many seconds instead, from --seed on: loops, branches and fusions among them");
  add_seconds_option(
      verb, "--soak", options->soak,
      "For so many seconds open and close clients, compile, run, donate and drop at random instead, and report "
      "what grows");
  verb.add_option("--diff", options->diff, "Compare two reports of --json: what fails now, and what no more")
      ->type_name("A B")
      ->expected(2);
  verb.add_option("--revision", options->revision, "Name the revision of the backend's sources in the report")
      ->type_name("TEXT");
  verb.add_option("--earlier", options->earlier,
                  "Say in the web page since when a case fails, by this report of --json; may be repeated, the oldest "
                  "first")
      ->type_name("FILE");
  verb.add_option("--bundle", options->bundle,
                  "Write results, versions, seeds and hashes to this file, which others can check by --verify")
      ->type_name("FILE");
  verb.add_option("--verify", options->verify,
                  "Check a file of --bundle: what does not match is named; exit code 1 where something does not")
      ->type_name("FILE");
  verb.add_option("--rerun", options->rerun,
                  "With --verify: run this share of the cases again. They are drawn at random, or by --seed")
      ->type_name("SHARE");
  verb.add_option("--waivers", options->waivers,
                  "Use this list of known defects of the suite in place of the one that came with it")
      ->type_name("FILE");
  verb.add_option("--registry", options->registry,
                  "Check the bundles in this folder, and list the products; with --html as a page")
      ->type_name("FOLDER");
  verb.add_option("--batch", options->batch,
                  "Compile so many cases as one program, for a backend whose compiler takes long for each. Cases that "
                  "do not pass "
                  "there run alone")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  verb.add_flag("--mutants", options->mutants,
                "Test the suite itself: run it on backends that are wrong on purpose, and say which it does not see");
  verb.add_flag("--worker", options->worker)->group("");
  verb.add_option("--case-file", options->case_file)->group("");
  verb.add_flag("--independent-only", options->independent_only)->group("");
  verb.footer(kFooter);
  return [options, &verb] {
    options->has_backend = verb.count("--backend") > 0;
    options->has_seed = verb.count("--seed") > 0;
    options->has_processes = verb.count("--processes") > 0;
    return conform(*options);
  };
}

}  // namespace collet::tool
