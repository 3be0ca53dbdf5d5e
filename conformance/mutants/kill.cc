// SPDX-License-Identifier: Apache-2.0
#include "conformance/mutants/kill.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include "conformance/corpus/corpus.h"
#include "conformance/mutants/mutations.h"
#include "hlo/base/json.h"

namespace collet::conformance {
namespace {

constexpr std::pair<std::string_view, std::string_view> kEquivalent[] = {
#define COLLET_EQUIVALENT(name, reason) {name, reason},
#include "conformance/mutants/equivalent.def"
    {"", ""}};

std::string_view reason_of(std::string_view name) {
  for (const auto& [mutant, reason] : kEquivalent)
    if (mutant == name) return reason;
  return {};
}

// Returns the path of a plugin in the build folder of this program.
std::string library(std::string_view folder, std::string_view name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path().parent_path() / "lib/collet" / folder / fmt::format("libcollet_backend_{}.so", name))
      .string();
}

std::vector<std::string> cases_of(const mutants::Mutant& mutant) {
  // For contraction: programs in which something is added to a product.
  if (mutant.kind == mutants::Mutant::Kind::Contracted)
    return {"contract/fusion/*", "contract/compile/*", "gelu/*", "rms_norm/*", "layer_norm/*", "add/*"};
  const std::string op = mutant.name.substr(mutant.name.rfind(':') + 1);
  return {op == "compare" ? "compare-*" : op + "/*"};
}

BackendChoice backend_of(const mutants::Mutant& mutant) {
  BackendChoice out;
  out.name = library("test_backends", "mutation");
  out.no_fallback = true;
  out.options = {{"mutant", mutant.name}, {"backend", library("backends", "interpreter")}};
  return out;
}

enum class Which : uint8_t { Quick, All, Independent };

// Returns the first case that fails; nothing if none does.
Expected<std::optional<CaseResult>> first_failure(const mutants::Mutant& mutant, const KillOptions& options,
                                                  Which which) {
  ConformOptions run;
  run.backend = backend_of(mutant);
  run.filters = cases_of(mutant);
  if (which == Which::Quick) run.profiles = {"quick"};
  run.independent_only = which == Which::Independent;
  run.jobs = options.jobs;
  run.stop_at_first = true;
  COLLET_ASSIGN(ConformReport report, run_conformance(run));
  for (CaseResult& one : report.cases)
    if (one.outcome != Outcome::Pass && one.outcome != Outcome::Unsupported) return std::optional(std::move(one));
  return std::optional<CaseResult>();
}

// Returns the first module of the corpus that fails.
Expected<std::string> first_in_corpus(const mutants::Mutant& mutant, const KillOptions& options) {
  if (options.corpus.empty()) return std::string();
  CorpusOptions run;
  run.backend = backend_of(mutant);
  run.path = options.corpus;
  run.jobs = options.jobs;
  COLLET_ASSIGN(const CorpusReport report, run_corpus(run));
  for (const CorpusResult& one : report.results)
    if (one.status != CorpusStatus::Pass && one.status != CorpusStatus::NotRun) return one.entry.name;
  return std::string();
}

// True if the evaluator could have the same fault: the fault is the same in every run of a program.
bool is_of_evaluator(const mutants::Mutant& mutant) {
  return !mutant.legal && mutant.group != "state";
}

Expected<Kill> run_mutant(const mutants::Mutant& mutant, const KillOptions& options) {
  Kill kill{.mutant = mutant.name,
            .group = mutant.group,
            .legal = mutant.legal,
            .reason = reason_of(mutant.name),
            .of_evaluator = is_of_evaluator(mutant)};
  COLLET_ASSIGN(std::optional<CaseResult> failure, first_failure(mutant, options, Which::Quick));
  kill.by_quick = failure.has_value();
  if (!failure) {
    COLLET_ASSIGN(failure, first_failure(mutant, options, Which::All));
  }
  if (!failure) return kill;
  kill.by = failure->name;
  if (!kill.of_evaluator) return kill;
  // The mutated interpreter also simulates an evaluator with the same fault. Such a fault is only detected by cases
  // whose expected results do not come from the evaluator.
  if (!failure->is_independent) {
    COLLET_ASSIGN(failure, first_failure(mutant, options, Which::Independent));
  }
  if (failure) {
    kill.by_oracle = failure->name;
  } else {
    COLLET_ASSIGN(kill.by_corpus, first_in_corpus(mutant, options));
  }
  return kill;
}

}  // namespace

bool KillReport::good() const {
  return std::all_of(mutants.begin(), mutants.end(), [](const Kill& one) {
    return one.by.empty() == (one.legal || !one.reason.empty()) && !one.evaluator_survives();
  });
}

std::vector<std::string> chosen_mutants(const KillOptions& options) {
  std::vector<std::string> names;
  for (const mutants::Mutant& mutant : mutants::all_mutants()) {
    const auto matches = [&](const std::string& filter) {
      return fnmatch(filter.c_str(), mutant.name.c_str(), 0) == 0;
    };
    if (options.filters.empty() || std::any_of(options.filters.begin(), options.filters.end(), matches))
      names.push_back(mutant.name);
  }
  return names;
}

Expected<KillReport> run_mutants(const KillOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  if (!std::filesystem::exists(library("test_backends", "mutation")))
    return not_found("the mutants are part of a build with tests, and not installed");
  const std::vector<std::string> names = chosen_mutants(options);
  if (names.empty()) return invalid_argument("no mutant has such a name; see --mutants --list");
  KillReport report;
  for (const std::string& name : names) {
    COLLET_ASSIGN(Kill kill, run_mutant(*mutants::find_mutant(name), options));
    report.mutants.push_back(std::move(kill));
    if (options.progress) options.progress(report.mutants.size(), names.size(), name);
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

std::string kill_text(const KillReport& report) {
  struct Row {
    std::string_view group;
    size_t all = 0, killed = 0, quick = 0, equivalent = 0;
    size_t evaluators = 0, by_oracle = 0, by_corpus = 0;
  };
  std::vector<Row> rows;
  Row sum{.group = "all"};
  std::string survivors;
  size_t legal = 0, accused = 0;
  for (const Kill& one : report.mutants) {
    if (one.legal) {
      ++legal;
      accused += !one.by.empty();
      if (!one.by.empty()) survivors += fmt::format("  {:<44} is legal, and failed {}\n", one.mutant, one.by);
      continue;
    }
    auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.group == one.group; });
    if (row == rows.end()) row = rows.insert(rows.end(), Row{.group = one.group});
    for (Row* r : {&*row, &sum}) {
      ++r->all;
      r->killed += !one.by.empty();
      r->quick += one.by_quick;
      r->equivalent += one.by.empty() && !one.reason.empty();
      r->evaluators += one.of_evaluator && one.reason.empty();
      r->by_oracle += !one.by_oracle.empty();
      r->by_corpus += !one.by_corpus.empty();
    }
    if (one.by.empty())
      survivors += fmt::format("  {:<44} {}\n", one.mutant, one.reason.empty() ? "NOT SEEN" : one.reason);
    if (!one.by.empty() && one.evaluator_survives())
      survivors += fmt::format("  {:<44} NOT SEEN in the evaluator\n", one.mutant);
    if (!one.by.empty() && !one.reason.empty())
      survivors += fmt::format("  {:<44} is listed as equivalent, and failed {}\n", one.mutant, one.by);
  }
  std::string out = fmt::format("{:<12} {:>8} {:>8} {:>8} {:>11} {:>14} {:>10} {:>10}\n", "", "mutants", "killed",
                                "by quick", "equivalent", "of evaluator", "by oracle", "by corpus");
  rows.push_back(sum);
  for (const Row& r : rows)
    out += fmt::format("{:<12} {:>8} {:>8} {:>8} {:>11} {:>14} {:>10} {:>10}\n", r.group, r.all, r.killed, r.quick,
                       r.equivalent, r.evaluators, r.by_oracle, r.by_corpus);
  if (legal > 0) out += fmt::format("{} legal variants, {} of them accused\n", legal, accused);
  if (!survivors.empty()) out += "not as it should be, or equivalent:\n" + survivors;
  const size_t others = sum.all - sum.equivalent;
  return out + fmt::format("{} of {} mutants killed, {:.1f} % by the profile quick, in {:.0f} s\n", sum.killed, others,
                           100.0 * static_cast<double>(sum.quick) / static_cast<double>(std::max<size_t>(others, 1)),
                           report.seconds);
}

std::string kill_json(const KillReport& report) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("good", report.good()).field("seconds", report.seconds).key("mutants").begin_array();
  for (const Kill& one : report.mutants) {
    json.begin_object().field("name", one.mutant).field("group", one.group).field("legal", one.legal);
    if (!one.by.empty()) json.field("killed_by", one.by).field("by_quick", one.by_quick);
    if (!one.reason.empty()) json.field("equivalent", one.reason);
    if (!one.by_oracle.empty()) json.field("by_oracle", one.by_oracle);
    if (!one.by_corpus.empty()) json.field("by_corpus", one.by_corpus);
    json.end_object();
  }
  json.end_array().end_object();
  return out + "\n";
}

}  // namespace collet::conformance
