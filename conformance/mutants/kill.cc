// SPDX-License-Identifier: Apache-2.0
#include "conformance/mutants/kill.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "conformance/mutants/mutations.h"

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

// Where the build has put a plugin, beside this program.
std::string library(std::string_view folder, std::string_view name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path().parent_path() / "lib/collet" / folder / fmt::format("libcollet_backend_{}.so", name))
      .string();
}

std::string cases_of(const mutants::Mutant& mutant) {
  const std::string op = mutant.name.substr(mutant.name.rfind(':') + 1);
  return op == "compare" ? "compare-*" : op + "/*";
}

// The first case that fails; empty where none does.
Expected<std::string> first_failure(const mutants::Mutant& mutant, const KillOptions& options, bool quick) {
  ConformOptions run;
  run.backend.name = library("test_backends", "mutation");
  run.backend.no_fallback = true;
  run.backend.options = {{"mutant", mutant.name}, {"backend", library("backends", "interpreter")}};
  run.filters = {cases_of(mutant)};
  if (quick) run.profiles = {"quick"};
  run.jobs = options.jobs;
  run.stop_at_first = true;
  COLLET_ASSIGN(const ConformReport report, run_conformance(run));
  for (const CaseResult& one : report.cases)
    if (one.outcome != Outcome::Pass && one.outcome != Outcome::Unsupported) return one.name;
  return std::string();
}

}  // namespace

bool KillReport::good() const {
  return std::all_of(mutants.begin(), mutants.end(),
                     [](const Kill& one) { return one.by.empty() == (one.legal || !one.reason.empty()); });
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
    const mutants::Mutant& mutant = *mutants::find_mutant(name);
    Kill kill{.mutant = name, .group = mutant.group, .legal = mutant.legal, .reason = reason_of(name)};
    COLLET_ASSIGN(kill.by, first_failure(mutant, options, true));
    kill.by_quick = !kill.by.empty();
    if (!kill.by_quick) {
      COLLET_ASSIGN(kill.by, first_failure(mutant, options, false));
    }
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
    }
    if (one.by.empty())
      survivors += fmt::format("  {:<44} {}\n", one.mutant, one.reason.empty() ? "NOT SEEN" : one.reason);
    if (!one.by.empty() && !one.reason.empty())
      survivors += fmt::format("  {:<44} is listed as equivalent, and failed {}\n", one.mutant, one.by);
  }
  std::string out = fmt::format("{:<12} {:>8} {:>8} {:>8} {:>11}\n", "", "mutants", "killed", "by quick", "equivalent");
  rows.push_back(sum);
  for (const Row& r : rows)
    out += fmt::format("{:<12} {:>8} {:>8} {:>8} {:>11}\n", r.group, r.all, r.killed, r.quick, r.equivalent);
  if (legal > 0) out += fmt::format("{} legal variants, {} of them accused\n", legal, accused);
  if (!survivors.empty()) out += "not as it should be, or equivalent:\n" + survivors;
  const size_t others = sum.all - sum.equivalent;
  return out + fmt::format("{} of {} mutants killed, {:.1f} % by the profile quick, in {:.0f} s\n", sum.killed, others,
                           100.0 * static_cast<double>(sum.quick) / static_cast<double>(std::max<size_t>(others, 1)),
                           report.seconds);
}

}  // namespace collet::conformance
