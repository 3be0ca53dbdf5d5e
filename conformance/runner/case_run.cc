// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/case_run.h"

#include <collet/hash.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "conformance/runner/batch.h"
#include "conformance/runner/case_result.h"
#include "conformance/runner/random_case.h"
#include "conformance/runner/soak.h"
#include "conformance/runner/tasks.h"
#include "hlo/base/files.h"

namespace collet::conformance {
namespace {

// A run ends after kMostHangs cases that hang, or after fewer, kManyHangs, if these are at least kHangShare of the cases that ran.
// After the first kPatientHangs, later cases get a part of their time only, since hangs mostly have one cause.
constexpr size_t kMostHangs = 64, kManyHangs = 8, kPatientHangs = 2;
constexpr double kHangShare = 0.05, kLessTime = 0.25;
// A run ends after kMostCrashes crashes if they are at least kCrashShare of the cases that ran: each costs a new process and
// device, and so many are not caused by single ops.
constexpr size_t kMostCrashes = 24;
constexpr double kCrashShare = 0.25;
// The status, in a journal, of a case that failed in a batch and has not run alone yet.
constexpr const char* kInBatch = "in batch";

// Moves cases with one text behind the first of them, so that a worker can compile it once. The texts of cases of the grid are
// not known here.
void put_alike_together(const std::vector<Case>& cases, std::vector<size_t>& chosen) {
  std::unordered_map<std::string_view, size_t> first;
  std::vector<size_t> place(cases.size());
  for (const size_t i : chosen) place[i] = cases[i].text.empty() ? i : first.emplace(cases[i].text, i).first->second;
  std::stable_sort(chosen.begin(), chosen.end(), [&](size_t a, size_t b) { return place[a] < place[b]; });
}

}  // namespace

void RepeatedFailures::note(const CaseResult& one) {
  const bool failed = is_failure(one.outcome);
  const bool same = failed && count_ > 0 && one.detail == detail_ && one.outcome == outcome_;
  count_ = same ? count_ + 1 : failed ? 1 : 0;
  detail_ = one.detail;
  outcome_ = one.outcome;
}

std::string RepeatedFailures::text() const {
  return fmt::format("{} cases in a row failed alike: {}", count_, detail_);
}

CaseRun::CaseRun(const ConformOptions& options, const std::vector<Case>& cases, PoolOptions& pool, Journal& journal,
                 ConformReport& report)
    : options_(options),
      cases_(cases),
      pool_(pool),
      journal_(journal),
      report_(report),
      ran_(cases.size()),
      alike_(options.most_alike) {
  report.cases.resize(cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    const Fields* before = journal.find(cases[i].name);
    if (before && find_field(*before, "of") != digest_of(i)) before = nullptr;
    if (before && !find_field(*before, "batch").empty()) wrong_in_batch_[i] = find_field(*before, "batch");
    if (before && find_field(*before, "status") != kInBatch) {
      report.cases[i] = result_of(cases[i], *before, report.claims, options.waivers);
      report.uses.add(Uses::from_text(find_field(*before, "uses")));
      ran_[i] = true;
      continue;
    }
    (is_contract(cases[i].name) && options.processes == 0 ? contracts_ : programs_).push_back(i);
  }
  put_alike_together(cases, programs_);
  pool.stop = [this] { return !ended().empty(); };
}

std::string CaseRun::ended() const {
  if (options_.stop_at_first && failures_ > 0) return "a case failed";
  if (options_.fuzz_seconds > 0 && Clock::now() - fuzz_start_ >= std::chrono::duration<double>(options_.fuzz_seconds))
    return "time is up";
  const double share = kHangShare * static_cast<double>(ended_cases_);
  if (hangs_ >= kMostHangs || (hangs_ >= kManyHangs && static_cast<double>(hangs_) >= share))
    return fmt::format("{} cases gave no answer in time", hangs_);
  if (crashes_ >= kMostCrashes && static_cast<double>(crashes_) >= kCrashShare * static_cast<double>(ended_cases_))
    return fmt::format("{} of {} cases crashed", crashes_, ended_cases_);
  return alike_.enough() ? alike_.text() : std::string();
}

double CaseRun::seconds_for(const Case& one) const {
  if (soak_case_seed(one.name)) return options_.soak_seconds + options_.program_timeout;
  if (options_.processes > 0) return options_.timeout + margin(options_);
  const double seconds = one.program.empty() ? options_.timeout : options_.program_timeout;
  return hangs_ < kPatientHangs ? seconds : kLessTime * seconds;
}

std::string CaseRun::digest_of(size_t i) const {
  const Case& one = cases_[i];
  std::string bytes = one.text;
  if (!one.program.empty())
    if (Expected<std::string> file = read_file(one.program, UINT64_MAX); file.ok()) bytes += *file;
  return fmt::format("{:016x}", collet_hash_bytes(0, bytes.data(), bytes.size()));
}

void CaseRun::set(size_t i, Fields fields) {
  fields.emplace_back("of", digest_of(i));
  if (const auto wrong = wrong_in_batch_.find(i); wrong != wrong_in_batch_.end())
    fields.emplace_back("batch", wrong->second);
  journal_.note(cases_[i].name, fields);
  report_.cases[i] = result_of(cases_[i], fields, report_.claims, options_.waivers);
  if (!is_failure(report_.cases[i].outcome)) return;
  ++failures_;
  if (options_.failed) options_.failed(report_.cases[i]);
}

void CaseRun::record(size_t i, const Fields& fields, const std::vector<std::string>& before) {
  set(i, fields);
  const CaseResult& result = report_.cases[i];
  if (is_failure(result.outcome)) ran_before_[result.name] = before;
  report_.uses.add(Uses::from_text(find_field(fields, "uses")));
  ran_[i] = true;
  alike_.note(result);
  ++ended_cases_;
  crashes_ += result.outcome == Outcome::Crash;
  hangs_ += result.outcome == Outcome::Timeout;
  ++done_;
  show_progress(result.name);
}

void CaseRun::show_progress(const std::string& name) {
  if (!options_.progress) return;
  if (options_.fuzz_seconds == 0) return options_.progress(done_, cases_.size(), name);
  const std::chrono::duration<double> spent = Clock::now() - fuzz_start_;
  options_.progress(static_cast<size_t>(std::min(spent.count(), options_.fuzz_seconds)),
                    static_cast<size_t>(std::ceil(options_.fuzz_seconds)), name);
}

void CaseRun::take_end(size_t i, const TaskResult& end) {
  TaskResult task = end;
  task.detail = fmt::format("{} the backend was closed, and {}", kAfter, end.detail);
  CaseResult& result = report_.cases[i];
  if (ran_[i] && is_failure(result.outcome)) {
    result.detail += "; " + task.detail;
    return;
  }
  set(i, fields_of(task));
}

Status CaseRun::run_contracts(const std::vector<std::string>& arguments) {
  const std::vector<std::string> usual = std::exchange(pool_.arguments, arguments);
  const Status status = run_alone(contracts_);
  pool_.arguments = usual;
  // The time for fuzzing begins here: selecting cases and opening the backend does not count.
  fuzz_start_ = Clock::now();
  return status;
}

Status CaseRun::run_programs() {
  std::vector<size_t> alone = programs_;
  if (options_.batch > 1 && options_.processes == 0) COLLET_TRY(run_batches(alone));
  if (ended().empty()) COLLET_TRY(run_alone(alone));
  judge_batches();
  return ok_status();
}

Status CaseRun::run_alone(const std::vector<size_t>& chosen) {
  // A backend that fails in `free` or `close` shows it when the worker closes it, after the cases.
  pool_.ended = [&](size_t k, const TaskResult& end) { take_end(chosen[k], end); };
  pool_.timeout = [&](size_t k) { return seconds_for(cases_[chosen[k]]); };
  pool_.follows = [&](size_t k) {
    return !cases_[chosen[k]].text.empty() && cases_[chosen[k]].text == cases_[chosen[k - 1]].text;
  };
  return run_tasks(
      chosen.size(), pool_, [&](size_t k) { return cases_[chosen[k]].name; },
      [&](size_t k, const TaskResult& task) {
        std::vector<std::string> before;
        for (const size_t earlier : task.before) before.push_back(cases_[chosen[earlier]].name);
        Fields fields = fields_of(task);
        record(chosen[k], fields, before);
      });
}

Status CaseRun::run_batches(std::vector<size_t>& chosen) {
  for (const size_t i : chosen) {
    if (!may_be_in_batch(cases_[i]) || random_case_seed(cases_[i].name) || soak_case_seed(cases_[i].name)) continue;
    if (batches_.empty() || batches_.back().cases.size() == options_.batch) batches_.emplace_back();
    batches_.back().cases.push_back(i);
  }
  pool_.ended = [&](size_t b, const TaskResult& end) { take_end(batches_[b].cases.back(), end); };
  pool_.follows = {};
  pool_.timeout = [&](size_t) { return options_.timeout; };
  const auto task_of = [&](size_t b) {
    Fields names;
    for (const size_t i : batches_[b].cases) names.emplace_back("name", cases_[i].name);
    return std::string(kBatch) + encode_fields(names);
  };
  const Status status = run_tasks(batches_.size(), pool_, task_of,
                                  [&](size_t b, const TaskResult& task) { take_batch(batches_[b], task); });
  std::erase_if(chosen, [&](size_t i) { return ran_[i]; });
  return status;
}

void CaseRun::take_batch(const Batch& batch, const TaskResult& task) {
  std::string_view uses = find_field(task.reply, "uses");  // of the program: they count once
  for (size_t k = 0; k < batch.cases.size(); ++k) {
    Fields fields = decode_fields(find_field(task.reply, fmt::format("case{}", k)));
    if (fields.empty()) continue;
    if (find_field(fields, "status") != "pass") {
      std::vector<std::string> names;
      for (const size_t i : batch.cases) names.push_back(cases_[i].name);
      const size_t wrong = batch.cases[k];
      wrong_in_batch_[wrong] = fmt::format("{}", fmt::join(names, "\n"));
      // A run that goes on with the journal must not forget it.
      journal_.note(cases_[wrong].name,
                    {{"status", kInBatch}, {"of", digest_of(wrong)}, {"batch", wrong_in_batch_[wrong]}});
      continue;
    }
    fields.emplace_back("seconds", fmt::format("{}", task.seconds / static_cast<double>(batch.cases.size())));
    fields.emplace_back("uses", std::string(std::exchange(uses, {})));
    record(batch.cases[k], fields, {});
  }
}

void CaseRun::judge_batches() {
  std::unordered_map<std::string_view, size_t> numbers;
  for (size_t i = 0; i < cases_.size() && !wrong_in_batch_.empty(); ++i) numbers.emplace(cases_[i].name, i);
  const auto fails = [&](const std::string& name) {
    const auto found = numbers.find(name);
    return found != numbers.end() && ran_[found->second] && is_failure(report_.cases[found->second].outcome);
  };
  std::vector<std::pair<size_t, std::string>> failures;
  for (const auto& [i, lines] : wrong_in_batch_) {
    std::vector<std::string> names;
    std::istringstream in(lines);
    for (std::string name; std::getline(in, name);) names.push_back(name);
    if (!ran_[i] || std::any_of(names.begin(), names.end(), fails)) continue;
    failures.emplace_back(i, fmt::format("it passes as a program of its own, and not in one program (--batch) of {}",
                                         fmt::join(names, ", ")));
  }
  for (const auto& [i, detail] : failures) set(i, {{"status", "fail"}, {"detail", detail}});
}

}  // namespace collet::conformance
