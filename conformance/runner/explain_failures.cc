// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/explain_failures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>

#include "conformance/runner/case_result.h"
#include "conformance/runner/random_case.h"
#include "conformance/runner/sequence.h"
#include "conformance/runner/soak.h"
#include "conformance/runner/tasks.h"

namespace collet::conformance {
namespace {

// How long sequences of cases are looked for after which others fail.
constexpr double kSecondsForSequences = 30;
// Limits of how many failures are reduced and how many crashes are run again, since both take long.
constexpr size_t kMostReduced = 40, kMostCrashesAgain = 8;

// Runs a crashed case alone in a new process, to find out whether the case itself crashes, or the cases that ran before
// it are the cause.
std::string blame(const PoolOptions& pool, const std::string& name, const std::vector<std::string>& before) {
  TaskResult again;
  const Status ran =
      run_tasks(1, pool, [&](size_t) { return name; }, [&](size_t, const TaskResult& result) { again = result; });
  if (!ran.ok()) return {};
  if (again.kind == TaskResult::Kind::Crashed) return "; it crashes alone as well";
  if (before.empty()) return "; alone in another process it does not crash";
  constexpr size_t kMostNamed = 8;
  return fmt::format(
      "; alone it does not crash: one of those that ran before it in the process may be to blame, the last first: {}",
      fmt::join(std::span(before).first(std::min(before.size(), kMostNamed)), ", "));
}

// Returns whether a case fails in a new process after those with the given names; nullopt if that cannot be told.
std::optional<bool> fails_after(PoolOptions pool, std::vector<std::string> names, const std::string& name) {
  pool.jobs = 1;
  names.push_back(name);
  TaskResult last;
  const Status ran = run_tasks(
      names.size(), pool, [&](size_t i) { return names[i]; },
      [&](size_t i, const TaskResult& task) {
        if (i + 1 == names.size()) last = task;
      });
  if (!ran.ok() || last.kind != TaskResult::Kind::Replied) return std::nullopt;
  return find_field(last.reply, "status") == "fail";
}

// Says of a failure that depends on what ran before it in its process, the latest first, what that is; empty for one that does not.
std::string dependence(const PoolOptions& pool, const std::string& name, const std::vector<std::string>& before,
                       double seconds) {
  const auto name_of = [&](size_t i) { return before[before.size() - 1 - i]; };  // in the order in which they ran
  const auto fails = [&](const std::vector<size_t>& runs) {
    std::vector<std::string> names;
    for (const size_t i : runs) names.push_back(name_of(i));
    return fails_after(pool, std::move(names), name);
  };
  const std::optional<Dependence> found = find_dependence(before.size(), fails, seconds);
  return found ? dependence_text(*found, name_of) : std::string();
}

}  // namespace

Status explain_failures(const ConformOptions& options, PoolOptions pool, const RanBefore& ran_before,
                        ConformReport& report) {
  pool.stop = {};
  pool.ended = {};
  pool.follows = {};
  pool.timeout = [&](size_t) { return options.timeout; };
  ConformOptions failed = options;
  failed.filters.clear();
  failed.profiles.clear();
  failed.shard = 0;
  failed.shards = 1;
  std::vector<CaseResult*> to_reduce;
  std::unordered_set<std::string> seen;
  size_t crashes = 0;
  for (CaseResult& one : report.cases) {
    if (!is_failure(one.outcome)) continue;
    failed.names.insert(one.name);
    const bool is_program =
        !is_contract(one.name) && !random_case_seed(one.name) && !is_whole(one.name) && !soak_case_seed(one.name);
    if (one.outcome == Outcome::Fail && is_program && options.processes == 0 && !one.evidence.empty() &&
        to_reduce.size() < kMostReduced && seen.insert(one.name.substr(0, one.name.find('/'))).second)
      to_reduce.push_back(&one);
    if (one.detail.starts_with(kAfter)) continue;
    if (options.processes > 0) continue;
    if (one.outcome != Outcome::Crash || !is_program || ++crashes > kMostCrashesAgain) continue;
    const auto before = ran_before.find(one.name);
    one.detail += blame(pool, one.name, before == ran_before.end() ? std::vector<std::string>() : before->second);
  }
  if (failed.names.empty()) return ok_status();
  std::unordered_map<std::string, std::string> programs;
  if (options.fuzz_seconds == 0)
    for (Case& one : chosen_cases(failed, true)) programs.emplace(one.name, std::move(one.text));
  for (CaseResult& one : report.cases) {
    if (!is_failure(one.outcome)) continue;
    if (const auto found = programs.find(one.name); found != programs.end()) one.program = found->second;
    if (const auto seed = random_case_seed(one.name)) one.program = random_case_text(*seed);
  }
  // What depends on other cases has no smaller program: in one process with many others, the search would end at ops that are right.
  double seconds = kSecondsForSequences;
  std::erase_if(to_reduce, [&](CaseResult* one) {
    const auto before = ran_before.find(one->name);
    if (before == ran_before.end()) return false;
    const auto start = std::chrono::steady_clock::now();
    const std::string text = dependence(pool, one->name, before->second, std::max(seconds, 0.0));
    seconds -= text.empty() ? 0 : std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    one->detail += text;
    return !text.empty();
  });
  PoolOptions reduces = pool;
  reduces.timeout = [](size_t) { return 4 * kSecondsToReduce; };
  COLLET_TRY(run_tasks(
      to_reduce.size(), reduces, [&](size_t i) { return std::string(kReduce) + to_reduce[i]->name; },
      [&](size_t i, const TaskResult& task) { to_reduce[i]->reduced = find_field(task.reply, "reduced"); }));
  // The search runs many programs in one process; what it ends at must fail in another one as well.
  for (CaseResult* one : to_reduce) {
    if (one->reduced.empty()) continue;
    const std::string task = std::string(kTry) + encode_fields({{"name", one->name}, {"text", one->reduced}});
    if (fails_after(pool, {}, task).value_or(true)) continue;
    one->reduced.clear();
    one->detail += "; smaller programs are wrong only after other ops ran";
  }
  return ok_status();
}

}  // namespace collet::conformance
