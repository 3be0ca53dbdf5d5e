// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/conform.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <unordered_map>

#include "conformance/cases/declared.h"
#include "conformance/contract/contract.h"
#include "conformance/contract/exports.h"
#include "conformance/runner/batch.h"
#include "conformance/runner/case_file.h"
#include "conformance/runner/describe_backend.h"
#include "conformance/runner/journal.h"
#include "conformance/runner/offered_program.h"
#include "conformance/runner/profiles.h"
#include "conformance/runner/program_case.h"
#include "conformance/runner/program_files.h"
#include "conformance/runner/program_tasks.h"
#include "conformance/runner/random_case.h"
#include "conformance/runner/run_case.h"
#include "conformance/runner/sequence.h"
#include "conformance/runner/serve_processes.h"
#include "conformance/runner/soak.h"
#include "conformance/runner/workers.h"
#include "hlo/base/files.h"
#include "hlo/base/sha256.h"

namespace collet::conformance {
namespace {

// The name of the task in which a worker leaves an instance open and ends.
constexpr std::string_view kLeavesOpen = "contract/?leaves_open";
constexpr double kSecondsToEnd = 4;
// A worker that is a group of processes may take so many seconds longer than the limit of a case.
constexpr double kSecondsOfGroup = 15;
// How the detail of a case begins after which the worker did not end well.
constexpr std::string_view kAfter = "after this case";
// Prefix of a task's name that asks a worker to reduce the failing program of a case.
constexpr std::string_view kDeclared = "?declared";
constexpr std::string_view kReduce = "?reduce ";
// How a task's name begins that asks a worker for the cases of a program; the fields `path` and `name` follow.
constexpr std::string_view kOffer = "?offer ";
constexpr double kSecondsToReduce = 2;
// How a task's name begins that asks a worker to run cases as one program; their names follow, as fields.
constexpr std::string_view kBatch = "?batch ";
// How a task's name begins that asks a worker to run a case with another program; the fields `name` and `text` follow.
constexpr std::string_view kTry = "?try ";
// How long sequences of cases are looked for after which others fail.
constexpr double kSecondsForSequences = 30;
// The share of a program's time in which its ops run one by one.
constexpr double kShareOfOps = 0.5;
// Limits of how many failures are reduced and how many crashes are run again, since both take long.
constexpr size_t kMostReduced = 40, kMostCrashesAgain = 8;
// The contract case that reports why the runtime does not accept a backend.
constexpr std::string_view kDescribesItself = "contract/lifecycle/describes_itself";
// A run ends after kMostHangs cases that hang. After the first kPatientHangs, later cases get a part of their time only,
// since hangs mostly have one cause.
constexpr size_t kMostHangs = 8, kPatientHangs = 2;
constexpr double kLessTime = 0.25;
// A run ends after kMostCrashes crashes if they are at least kCrashShare of the cases that ran: each costs a new process and
// device, and so many are not caused by single ops.
constexpr size_t kMostCrashes = 24;
constexpr double kCrashShare = 0.25;

// True for contract cases, which use the plugin's table directly; other cases run a program through the runtime.
bool is_contract(std::string_view name) {
  return name.starts_with("contract/");
}

// True for the cases of whole programs.
bool is_whole(std::string_view name) {
  return name.starts_with(kWholeProgram);
}

double number(const Fields& fields, std::string_view key) {
  return std::strtod(std::string(find_field(fields, key)).c_str(), nullptr);
}

Outcome outcome_of(std::string_view status) {
  if (status == "pass") return Outcome::Pass;
  if (status == "unsupported") return Outcome::Unsupported;
  return status == "oracle" ? Outcome::Oracle : Outcome::Fail;
}

// Returns the outcome of a task as fields, which a journal stores.
Fields fields_of(const TaskResult& task) {
  Fields fields = task.reply;
  if (task.kind != TaskResult::Kind::Replied)
    fields = {{"status", task.kind == TaskResult::Kind::TimedOut ? "timeout" : "crash"}, {"detail", task.detail}};
  fields.emplace_back("seconds", fmt::format("{}", task.seconds));
  return fields;
}

void read_errors(std::string_view text, ErrorCounts& errors) {
  for (int64_t& count : errors) {
    const size_t end = std::min(text.find(' '), text.size());
    count = std::strtoll(std::string(text.substr(0, end)).c_str(), nullptr, 10);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// Lets a failure count as passed if its case has a waiver.
void apply_waiver(std::span<const Waiver> waivers, CaseResult& result) {
  if (result.outcome != Outcome::Fail) return;
  const Waiver* waiver = find_waiver(waivers, result.name);
  if (waiver == nullptr) return;
  result.outcome = Outcome::Pass;
  result.waiver = waiver->number;
  result.detail =
      fmt::format("waived by {} of {}, {}: {}", waiver->number, waiver->date, waiver->reason, result.detail);
}

CaseResult result_of(const Case& one, const Fields& fields, const std::vector<std::string>& claims,
                     std::span<const Waiver> waivers) {
  CaseResult result{.name = one.name, .op = one.op, .type = one.type, .pattern = one.pattern};
  result.seconds = number(fields, "seconds");
  const std::string_view status = find_field(fields, "status");
  result.detail = find_field(fields, "detail");
  if (status == "crash" || status == "timeout") {
    result.outcome = status == "timeout" ? Outcome::Timeout : Outcome::Crash;
    const std::string promises = is_contract(one.name) ? promises_of(one.name) : std::string();
    if (!promises.empty()) result.detail += "; " + promises;
    return result;
  }
  result.outcome = outcome_of(status);
  result.ulp = number(fields, "ulp");
  result.share = number(fields, "share");
  result.evidence = find_field(fields, "evidence");
  result.answer_seconds = number(fields, "answer_seconds");
  result.compile_seconds = number(fields, "compile_seconds");
  result.run_seconds = number(fields, "run_seconds");
  result.beside_seconds = number(fields, "beside_seconds");
  result.is_independent = !find_field(fields, "independent").empty();
  read_errors(find_field(fields, "errors"), result.errors);
  result.device_ops = static_cast<int64_t>(number(fields, "device_ops"));
  result.fallback_ops = static_cast<int64_t>(number(fields, "fallback_ops"));
  const bool elsewhere =
      result.outcome == Outcome::Unsupported || (result.outcome == Outcome::Pass && result.fallback_ops > 0);
  if (const Profile* profile = elsewhere ? claimed_profile(claims, result) : nullptr) {
    result.detail = fmt::format("profile {} is claimed, and the device did not take it{}{}", profile->name,
                                result.detail.empty() ? "" : ": ", result.detail);
    result.outcome = Outcome::Fail;
    return result;
  }
  apply_waiver(waivers, result);
  return result;
}

// Adds the profiles that the file with the library's name and the suffix .claims lists:
// `libcollet_backend_acme.so.claims`.
Status add_claims_of_file(const std::string& library, std::vector<std::string>& claims) {
  std::ifstream in(library + ".claims");
  if (!in) return ok_status();
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  COLLET_ASSIGN(const std::vector<std::string> more, read_claims(text));
  claims.insert(claims.end(), more.begin(), more.end());
  return ok_status();
}

// The facts that must agree for a journal to be continued. They include a hash of the library, so a rebuilt library starts
// anew.
std::string journal_head(const ConformOptions& options, const ConformReport& report) {
  std::string head =
      fmt::format("collet conform, {} {} of {}, seed {}{}", report.backend, report.version, library_digest(report.path),
                  options.seed, options.backend.no_fallback ? ", no fallback" : "");
  for (const auto& [key, value] : options.backend.options) head += fmt::format(", {}={}", key, value);
  if (options.processes > 0) head += fmt::format(", {} x {} devices", options.processes, options.backend.devices);
  std::replace(head.begin(), head.end(), '\n', ' ');
  return head;
}

std::vector<std::string> arguments_of(const ConformOptions& options, const BackendChoice& backend) {
  std::vector<std::string> arguments = worker_arguments(backend);
  arguments.insert(arguments.end(), {"--seed", std::to_string(options.seed)});
  if (options.full) arguments.emplace_back("--full");
  if (options.independent_only) arguments.emplace_back("--independent-only");
  if (!options.case_file.empty()) arguments.insert(arguments.end(), {"--case-file", options.case_file});
  if (!options.beside.empty()) arguments.insert(arguments.end(), {"--beside", options.beside});
  if (options.processes > 0)
    arguments.insert(arguments.end(),
                     {"--processes", std::to_string(options.processes), "--timeout", fmt::format("{}", options.timeout),
                      "--memory", std::to_string(std::max(options.memory_bytes >> 20, uint64_t{1}))});
  if (options.soak_seconds > 0) arguments.insert(arguments.end(), {"--soak", fmt::format("{}", options.soak_seconds)});
  return arguments;
}

// Returns the cases of the patterns that the backend declares for its first device.
Expected<std::vector<Case>> declared_cases(const Session& session, bool full) {
  constexpr size_t kInstances = 12, kInstancesOfFull = 64;
  std::vector<Case> out;
  const char* text = nullptr;
  for (uint32_t i = 0; const char* name = collet_client_pattern(session.client(), 0, i, &text); ++i) {
    if (!text) continue;
    Expected<std::vector<Case>> cases = cases_of_pattern(text, full ? kInstancesOfFull : kInstances);
    if (!cases.ok()) return cases.status().with_prefix(fmt::format("pattern '{}' of the backend: ", name));
    std::move(cases->begin(), cases->end(), std::back_inserter(out));
  }
  return out;
}

// A worker that is a group of processes sees itself which of them gives no answer, and says so a little later.
double margin(const ConformOptions& options) {
  return options.processes > 0 ? kSecondsOfGroup : 0;
}

// Returns the options of the worker pool. `options` must outlive the result.
PoolOptions pool_of(const ConformOptions& options) {
  PoolOptions pool;
  pool.arguments = arguments_of(options, options.backend);
  pool.jobs = options.jobs;
  pool.memory_bytes = options.memory_bytes;
  pool.timeout = [&](size_t) { return options.timeout + margin(options); };
  pool.start_seconds = 0;  // the limit holds for opening the backend, too
  return pool;
}

// Opens the backend in a worker, so that even a crash there is only reported.
Status probe(const std::string& name, PoolOptions& pool, ConformReport& report) {
  TaskResult answer;
  COLLET_TRY(run_tasks(
      1, pool, [](size_t) { return std::string(kProbe); }, [&](size_t, const TaskResult& result) { answer = result; }));
  if (answer.kind == TaskResult::Kind::TimedOut)
    return Status(
        Code::DeadlineExceeded,
        fmt::format("the backend cannot be opened: no answer in time, {:g} s, from '{}'", pool.timeout(0), name));
  if (answer.kind != TaskResult::Kind::Replied)
    return internal_error(fmt::format("the backend cannot be opened: {} ('{}')", answer.detail, name));
  // The measured time of opening limits the time that later workers may take to open the backend, so that a hang wastes
  // less.
  pool.start_seconds = std::min(pool.timeout(0), 1 + 5 * answer.seconds);
  if (const std::string_view error = find_field(answer.reply, "error"); !error.empty()) {
    // An option that the backend refuses is the caller's error; any other error means that the backend is unavailable.
    const bool refused = static_cast<Code>(static_cast<int>(number(answer.reply, "code"))) == Code::InvalidArgument;
    return Status(refused ? Code::InvalidArgument : Code::Unavailable, std::string(error));
  }
  report.backend = find_field(answer.reply, "name");
  report.version = find_field(answer.reply, "version");
  report.path = find_field(answer.reply, "path");
  report.fallback = find_field(answer.reply, "fallback");
  report.declared = find_field(answer.reply, "declared");
  report.machine = find_field(answer.reply, "machine");
  report.interface = find_field(answer.reply, "interface");
  report.opset = static_cast<uint32_t>(number(answer.reply, "opset"));
  return ok_status();
}

bool is_failure(Outcome outcome) {
  return outcome != Outcome::Pass && outcome != Outcome::Unsupported;
}

// Counts consecutive failures with equal messages.
class RepeatedFailures {
 public:
  explicit RepeatedFailures(size_t most) : most_(most) {}
  void note(const CaseResult& one) {
    const bool failed = is_failure(one.outcome);
    const bool same = failed && count_ > 0 && one.detail == detail_ && one.outcome == outcome_;
    count_ = same ? count_ + 1 : failed ? 1 : 0;
    detail_ = one.detail;
    outcome_ = one.outcome;
  }
  bool enough() const { return most_ > 0 && count_ >= most_; }
  std::string text() const { return fmt::format("{} cases in a row failed alike: {}", count_, detail_); }

 private:
  size_t most_, count_ = 0;
  std::string detail_;
  Outcome outcome_ = Outcome::Pass;
};

// True if the runtime refuses the backend because of what the backend reports about itself: it opens, but its
// description is invalid. A missing device or a wrong option is not the backend's fault.
bool describes_itself_wrongly(const PoolOptions& pool) {
  TaskResult answer;
  const Status ran = run_tasks(
      1, pool, [](size_t) { return std::string(kDescribesItself); },
      [&](size_t, const TaskResult& result) { answer = result; });
  return ran.ok() && answer.kind == TaskResult::Kind::Replied && find_field(answer.reply, "status") == "fail" &&
         find_field(answer.reply, "error").empty();
}

// Runs contract cases on the plugin's table, in a process in which the runtime has not loaded the plugin.
class ContractWorker {
 public:
  explicit ContractWorker(const BackendChoice& backend) : backend_(backend) {}

  Fields run(std::string_view name) {
    if (!plugin_) {
      Expected<std::unique_ptr<Plugin>> loaded = Plugin::load(backend_.name, backend_.options);
      if (!loaded.ok()) return describe_failure(loaded.status());
      plugin_ = *std::move(loaded);
    }
    if (name == kLeftOpen) return run_left_open();
    if (name == kLeavesOpen) name = kLeftOpen;
    const std::vector<ContractCase>& all = contract_cases();
    const auto found = std::find_if(all.begin(), all.end(), [&](const ContractCase& one) { return one.name == name; });
    if (found == all.end()) return {{"status", "oracle"}, {"detail", "no such case"}};
    Contract contract(*plugin_);
    found->run(contract);
    Fields fields = {
        {"status", std::string(contract.outcome())}, {"detail", contract.text()}, {"uses", contract.uses().text()}};
    if (contract.lost()) add_retires(fields);
    return fields;
  }

 private:
  // Starts another worker process that leaves an instance open and exits.
  Fields run_left_open() const {
    PoolOptions pool;
    pool.arguments = worker_arguments(backend_);
    pool.timeout = [](size_t) { return kSecondsToEnd; };
    pool.start_seconds = kSecondsToEnd;
    pool.judge_end = true;
    TaskResult answer;
    const Status ran = run_tasks(
        1, pool, [](size_t) { return std::string(kLeavesOpen); },
        [&](size_t, const TaskResult& result) { answer = result; });
    if (!ran.ok()) return describe_failure(ran);
    if (answer.kind == TaskResult::Kind::Replied) return answer.reply;
    return {{"status", "fail"},
            {"detail", fmt::format("a process that had an instance open did not end well: {}; {}", answer.detail,
                                   promises_of(kLeftOpen))}};
  }

  BackendChoice backend_;
  std::unique_ptr<Plugin> plugin_;
};

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

// Moves cases with one text behind the first of them, so that a worker can compile it once. The texts of cases of the grid are
// not known here.
void put_alike_together(const std::vector<Case>& cases, std::vector<size_t>& chosen) {
  std::unordered_map<std::string_view, size_t> first;
  std::vector<size_t> place(cases.size());
  for (const size_t i : chosen) place[i] = cases[i].text.empty() ? i : first.emplace(cases[i].text, i).first->second;
  std::stable_sort(chosen.begin(), chosen.end(), [&](size_t a, size_t b) { return place[a] < place[b]; });
}

// Adds details to the failures of a report.
Status explain_failures(const ConformOptions& options, PoolOptions pool,
                        const std::unordered_map<std::string, std::vector<std::string>>& ran_before,
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

}  // namespace

std::string_view outcome_name(Outcome outcome) {
  constexpr std::string_view kNames[] = {"pass", "fail", "crash", "timeout", "unsupported", "oracle"};
  return kNames[static_cast<size_t>(outcome)];
}

std::string library_digest(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return {};
  Sha256 digest;
  std::string piece(size_t{1} << 20, '\0');
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0)
    digest.add(std::string_view(piece).substr(0, static_cast<size_t>(in.gcount())));
  return digest.finish();
}

size_t ConformReport::count(Outcome outcome) const {
  return static_cast<size_t>(
      std::count_if(cases.begin(), cases.end(), [&](const CaseResult& c) { return c.outcome == outcome; }));
}

WorkerTimes ConformReport::worker_times() const {
  WorkerTimes times;
  for (const CaseResult& one : cases) {
    if (is_contract(one.name)) {
      times.contract += one.seconds;
      continue;
    }
    times.compile += one.compile_seconds;
    times.answer += one.answer_seconds;
    times.run += std::max(0.0, one.seconds - one.compile_seconds - one.answer_seconds);
  }
  return times;
}

bool ConformReport::nothing_on_device() const {
  const auto is_asked = [](const CaseResult& one) {
    const bool has_no_op = is_whole(one.name) && one.outcome == Outcome::Pass && one.fallback_ops == 0;
    return !is_contract(one.name) && (one.device_ops > 0 || !has_no_op);
  };
  const auto ran = [&](const CaseResult& one) { return is_asked(one) && one.device_ops > 0; };
  return of_all_names && std::any_of(cases.begin(), cases.end(), is_asked) &&
         std::none_of(cases.begin(), cases.end(), ran);
}

bool ConformReport::conforms() const {
  return not_run == 0 && !nothing_on_device() && count(Outcome::Pass) > 0 &&
         count(Outcome::Pass) + count(Outcome::Unsupported) == cases.size();
}

std::vector<std::string> worker_arguments(const BackendChoice& backend) {
  std::vector<std::string> arguments = {"conform", "--worker", "--backend", backend.name};
  if (backend.no_fallback) arguments.emplace_back("--no-fallback");
  for (const auto& [key, value] : backend.options) {
    arguments.emplace_back("--option");
    arguments.push_back(key + "=" + value);
  }
  if (backend.devices > 0) arguments.insert(arguments.end(), {"--devices", std::to_string(backend.devices)});
  return arguments;
}

Expected<ConformReport> probe_backend(const ConformOptions& options) {
  PoolOptions pool = pool_of(options);
  ConformReport report;
  COLLET_TRY(probe(options.backend.name, pool, report));
  return report;
}

Expected<ConformReport> run_conformance(const ConformOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Case> cases = chosen_cases(options, false);
  if (cases.empty()) return invalid_argument("no case has such a name; see --list");
  PoolOptions pool = pool_of(options);
  ConformReport report;
  report.seed = options.seed;
  report.full = options.full;
  report.beside = options.beside;
  report.of_all_names = options.filters.empty() && options.names.empty() && options.fuzz_seconds == 0 &&
                        options.soak_seconds == 0 && options.processes == 0;
  report.processes = options.processes;
  report.devices = options.backend.devices;
  report.whole = report.of_all_names && options.cases.empty() && options.profiles.empty() && options.shards == 1;
  const Status opened = probe(options.backend.name, pool, report);
  if (!opened.ok()) {
    if (opened.code() == Code::InvalidArgument || opened.code() == Code::DeadlineExceeded || options.processes > 0 ||
        !describes_itself_wrongly(pool))
      return opened;
    report.backend = report.path = options.backend.name;
  }
  report.exports = more_exports(report.path);
  report.claims = options.claims;
  COLLET_TRY(add_claims_of_file(report.path, report.claims));
  COLLET_ASSIGN(Journal journal, Journal::open(options.resume, journal_head(options, report)));
  report.cases.resize(cases.size());
  std::vector<size_t> contracts, programs;
  std::vector<bool> ran(cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    if (const Fields* before = journal.find(cases[i].name)) {
      report.cases[i] = result_of(cases[i], *before, report.claims, options.waivers);
      report.uses.add(Uses::from_text(find_field(*before, "uses")));
      ran[i] = true;
      continue;
    }
    (is_contract(cases[i].name) && options.processes == 0 ? contracts : programs).push_back(i);
  }
  put_alike_together(cases, programs);
  size_t done = 0;
  RepeatedFailures alike(options.most_alike);
  size_t hangs = 0, crashes = 0, ended_cases = 0;
  const auto seconds_for = [&](const Case& one) {
    if (soak_case_seed(one.name)) return options.soak_seconds + options.program_timeout;
    if (options.processes > 0) return options.timeout + margin(options);
    const double seconds = one.program.empty() ? options.timeout : options.program_timeout;
    return hangs < kPatientHangs ? seconds : kLessTime * seconds;
  };
  const std::chrono::duration<double> fuzz_time(options.fuzz_seconds);
  auto fuzz_start = start;
  size_t failures = 0;
  std::unordered_map<std::string, std::vector<std::string>> ran_before;
  const auto ended = [&]() -> std::string {
    if (options.stop_at_first && failures > 0) return "a case failed";
    if (options.fuzz_seconds > 0 && std::chrono::steady_clock::now() - fuzz_start >= fuzz_time) return "time is up";
    if (hangs >= kMostHangs) return fmt::format("{} cases gave no answer in time", hangs);
    if (crashes >= kMostCrashes && static_cast<double>(crashes) >= kCrashShare * static_cast<double>(ended_cases))
      return fmt::format("{} of {} cases crashed", crashes, ended_cases);
    return alike.enough() ? alike.text() : std::string();
  };
  pool.stop = [&] { return !ended().empty(); };
  struct Batch {
    std::vector<size_t> cases, wrong;  ///< numbers of its cases, and of those that failed in it
  };
  std::vector<Batch> batches;
  // Takes the outcome of a case. `before`: cases that the same process had run, the latest first.
  const auto record = [&](size_t i, Fields fields, const std::vector<std::string>& before) {
    const Case& one = cases[i];
    journal.note(one.name, fields);
    CaseResult& result = report.cases[i] = result_of(one, fields, report.claims, options.waivers);
    const bool failed = is_failure(result.outcome);
    if (failed) ran_before[one.name] = before;
    report.uses.add(Uses::from_text(find_field(fields, "uses")));
    ran[i] = true;
    alike.note(result);
    ++ended_cases;
    failures += failed;
    crashes += result.outcome == Outcome::Crash;
    hangs += result.outcome == Outcome::Timeout;
    if (options.failed && failed) options.failed(result);
    if (!options.progress) return;
    ++done;
    if (options.fuzz_seconds > 0) {
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - fuzz_start;
      options.progress(static_cast<size_t>(std::min(spent.count(), options.fuzz_seconds)),
                       static_cast<size_t>(std::ceil(options.fuzz_seconds)), one.name);
    } else {
      options.progress(done, cases.size(), one.name);
    }
  };
  // Runs cases as programs of several, and removes those from `chosen` that pass there.
  const auto run_batches = [&](std::vector<size_t>& chosen) {
    for (const size_t i : chosen) {
      if (!may_be_in_batch(cases[i]) || random_case_seed(cases[i].name) || soak_case_seed(cases[i].name)) continue;
      if (batches.empty() || batches.back().cases.size() == options.batch) batches.emplace_back();
      batches.back().cases.push_back(i);
    }
    pool.ended = {};
    pool.follows = {};
    pool.timeout = [&](size_t) { return options.timeout; };
    const auto task_of = [&](size_t b) {
      Fields names;
      for (const size_t i : batches[b].cases) names.emplace_back("name", cases[i].name);
      return std::string(kBatch) + encode_fields(names);
    };
    const Status status = run_tasks(batches.size(), pool, task_of, [&](size_t b, const TaskResult& task) {
      std::string_view uses = find_field(task.reply, "uses");  // of the program: they count once
      Batch& batch = batches[b];
      for (size_t k = 0; k < batch.cases.size(); ++k) {
        Fields fields = decode_fields(find_field(task.reply, fmt::format("case{}", k)));
        if (fields.empty()) continue;
        if (find_field(fields, "status") != "pass") {
          batch.wrong.push_back(batch.cases[k]);
          continue;
        }
        fields.emplace_back("seconds", fmt::format("{}", task.seconds / static_cast<double>(batch.cases.size())));
        fields.emplace_back("uses", std::string(std::exchange(uses, {})));
        record(batch.cases[k], std::move(fields), {});
      }
    });
    std::erase_if(chosen, [&](size_t i) { return ran[i]; });
    return status;
  };
  // Where no case of a batch fails alone, those that failed in it are the only sign of what is wrong.
  const auto judge_batches = [&] {
    for (const Batch& batch : batches) {
      const auto fails = [&](size_t i) { return ran[i] && is_failure(report.cases[i].outcome); };
      if (std::any_of(batch.cases.begin(), batch.cases.end(), fails)) continue;
      std::vector<std::string> others;
      for (const size_t i : batch.cases) others.push_back(cases[i].name);
      for (const size_t i : batch.wrong) {
        if (!ran[i]) continue;
        const Fields fields = {
            {"status", "fail"},
            {"detail", fmt::format("it passes as a program of its own, and not in one program (--batch) of {}",
                                   fmt::join(others, ", "))}};
        journal.note(cases[i].name, fields);
        report.cases[i] = result_of(cases[i], fields, report.claims, options.waivers);
        ++failures;
        if (options.failed) options.failed(report.cases[i]);
      }
    }
  };
  const auto run = [&](const std::vector<size_t>& chosen) {
    // A backend that fails in `free` or `close` shows it when the worker closes it, after the cases.
    pool.ended = [&](size_t i, const TaskResult& end) {
      CaseResult& result = report.cases[chosen[i]];
      TaskResult task = end;
      task.detail = fmt::format("{} the backend was closed, and {}", kAfter, end.detail);
      if (is_failure(result.outcome)) {
        result.detail += "; " + task.detail;
        return;
      }
      const Fields fields = fields_of(task);
      journal.note(cases[chosen[i]].name, fields);
      result = result_of(cases[chosen[i]], fields, report.claims, options.waivers);
      ++failures;
      if (options.failed) options.failed(result);
    };
    pool.timeout = [&](size_t i) { return seconds_for(cases[chosen[i]]); };
    pool.follows = [&](size_t i) {
      return !cases[chosen[i]].text.empty() && cases[chosen[i]].text == cases[chosen[i - 1]].text;
    };
    return run_tasks(
        chosen.size(), pool, [&](size_t i) { return cases[chosen[i]].name; },
        [&](size_t i, const TaskResult& task) {
          std::vector<std::string> before;
          for (const size_t earlier : task.before) before.push_back(cases[chosen[earlier]].name);
          record(chosen[i], fields_of(task), before);
        });
  };
  const std::vector<std::string> through_the_runtime = pool.arguments;
  BackendChoice library = options.backend;
  library.name = report.path;
  pool.arguments = arguments_of(options, library);
  COLLET_TRY(run(contracts));
  // The time for fuzzing begins here: selecting cases and opening the backend does not count.
  fuzz_start = std::chrono::steady_clock::now();
  pool.arguments = through_the_runtime;
  report.ended = ended();
  if (report.ended.empty() && !opened.ok()) report.ended = opened.message();
  if (report.ended.empty() && options.batch > 1 && options.processes == 0) COLLET_TRY(run_batches(programs));
  if (report.ended.empty()) report.ended = ended();
  if (report.ended.empty()) COLLET_TRY(run(programs));
  judge_batches();
  if (report.ended.empty()) report.ended = ended();
  if (!report.ended.empty()) {
    std::vector<CaseResult> seen;
    for (size_t i = 0; i < cases.size(); ++i)
      if (ran[i]) seen.push_back(std::move(report.cases[i]));
    report.not_run = options.fuzz_seconds > 0 ? 0 : cases.size() - seen.size();
    report.cases = std::move(seen);
  }
  report.not_kept = journal.failure();
  if (options.explain) COLLET_TRY(explain_failures(options, pool, ran_before, report));
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

Expected<std::vector<Case>> cases_of_backend(const ConformOptions& options) {
  const PoolOptions pool = pool_of(options);
  TaskResult answer;
  COLLET_TRY(run_tasks(
      1, pool, [](size_t) { return std::string(kDeclared); },
      [&](size_t, const TaskResult& result) { answer = result; }));
  const std::string_view text = find_field(answer.reply, "cases"), note = find_field(answer.reply, "note");
  if (!note.empty()) return invalid_argument(std::string(note));
  if (answer.kind != TaskResult::Kind::Replied || text.empty()) return std::vector<Case>();
  return read_case_file(options.backend.name, text);
}

Expected<ProgramCases> cases_of_programs(const ConformOptions& options, const std::vector<std::string>& paths) {
  ProgramCases out;
  COLLET_ASSIGN(const std::vector<ProgramFile> files, find_programs(paths));
  PoolOptions pool = pool_of(options);
  ConformReport backend;
  COLLET_TRY(probe(options.backend.name, pool, backend));
  pool.timeout = [&](size_t) { return options.program_timeout; };
  struct Offered {
    std::vector<Case> cases;
    std::string note, unread, argument;
  };
  std::vector<Offered> offered(files.size());
  Status status;
  size_t done = 0;
  COLLET_TRY(run_tasks(
      files.size(), pool,
      [&](size_t i) { return std::string(kOffer) + encode_fields({{"path", files[i].path}, {"name", files[i].name}}); },
      [&](size_t i, const TaskResult& task) {
        const Fields fields = fields_of(task);
        if (options.progress) options.progress(++done, files.size(), files[i].name);
        offered[i].unread = find_field(fields, "unread");
        offered[i].argument = files[i].argument;
        if (!offered[i].unread.empty()) return;
        auto cases = read_case_file(files[i].path, find_field(fields, "cases"));
        if (cases.ok()) offered[i].cases = *std::move(cases);
        if (!cases.ok() && status.ok()) status = cases.status();
        offered[i].note =
            fmt::format("{}: {}{}", files[i].name, find_field(fields, "note"), find_field(fields, "detail"));
        // A program that cannot be offered is run as a whole, so that the report says why.
        if (task.kind != TaskResult::Kind::Replied)
          offered[i].cases = {
              {.name = fmt::format("{}{}", kWholeProgram, files[i].name), .op = Op::CALL, .program = files[i].path}};
      }));
  COLLET_TRY(status);
  std::unordered_set<std::string> names, texts;
  for (Offered& one : offered) {
    if (!one.unread.empty()) {
      out.unread.push_back(std::move(one.unread));
      continue;
    }
    out.notes.push_back(std::move(one.note));
    for (Case& each : one.cases) {
      if (!names.insert(each.name).second) continue;
      const std::string kind = each.name.substr(each.name.rfind('/') + 1);  // the values
      if (!each.text.empty() && !texts.insert(kind + text_without_names(each.text)).second) continue;
      if (!one.argument.empty()) out.origins.emplace(each.name, one.argument);
      out.cases.push_back(std::move(each));
    }
  }
  if (out.cases.empty() && out.unread.empty()) return invalid_argument("the programs have no ops for a device");
  return out;
}

int serve_conformance(const ConformOptions& options) {
  if (options.processes > 0) return serve_processes(options, arguments_of(options, options.backend));
  std::vector<Case> cases;
  if (options.case_file.empty()) {
    cases = all_cases(options.full);
  } else {
    const Expected<std::string> text = read_file(options.case_file, UINT64_MAX);
    Expected<std::vector<Case>> read = text.ok() ? read_case_file(options.case_file, *text) : text.status();
    if (!read.ok()) return 1;
    cases = *std::move(read);
  }
  std::unordered_map<std::string_view, const Case*> by_name;
  for (const Case& one : cases) by_name.emplace(one.name, &one);
  std::unique_ptr<Session> session, beside;
  KeptProgram kept;                                                           // of `session`
  std::vector<std::string> other_worker = worker_arguments(options.backend);  // that runs cases of its own
  other_worker.insert(other_worker.end(), {"--seed", std::to_string(options.seed)});
  std::vector<Case> declared;
  ContractWorker contract(options.backend);
  const auto answer = [&](std::string_view task) -> Fields {
    if (is_contract(task)) return contract.run(task);
    if (const auto seed = soak_case_seed(task)) return run_soak(*seed, options.backend, options.soak_seconds);
    if (!session) {
      Expected<std::unique_ptr<Session>> opened = Session::open(options.backend);
      if (!opened.ok()) return describe_failure(opened.status());
      session = *std::move(opened);
      // A text that cannot be read is reported by kDeclared.
      if (options.case_file.empty())
        if (Expected<std::vector<Case>> found = declared_cases(*session, options.full); found.ok())
          declared = *std::move(found);
      for (const Case& one : declared) by_name.emplace(one.name, &one);
      if (!options.beside.empty() && task != kProbe) {
        Expected<std::unique_ptr<Session>> other = Session::open({.name = options.beside});
        if (other.ok()) beside = *std::move(other);
      }
    }
    if (task == kProbe) return describe_backend(*session);
    if (task == kDeclared) {
      const Expected<std::vector<Case>> found = declared_cases(*session, options.full);
      if (!found.ok()) return {{"note", found.status().message()}};
      return {{"cases", found->empty() ? "" : case_file_text(*found)}};
    }
    if (task.starts_with(kOffer)) return offer_cases(task.substr(kOffer.size()), *session);
    if (const auto seed = random_case_seed(task)) return run_random_case(*seed, *session);
    if (task.starts_with(kBatch)) {
      const Fields names = decode_fields(task.substr(kBatch.size()));
      std::vector<Case> batch;  // a case of the grid is valid until the next one is found
      for (const auto& [key, name] : names) {
        const auto known = by_name.find(name);
        batch.push_back(known != by_name.end() ? *known->second : find_grid_case(name));
        if (batch.back().op == Op::INVALID) return {{"note", "no such case"}};
      }
      std::vector<const Case*> all;
      for (const Case& one : batch) all.push_back(&one);
      return run_batch(all, *session, options.seed, options.independent_only);
    }
    const bool reduces = task.starts_with(kReduce);
    if (reduces) task.remove_prefix(kReduce.size());
    std::string other_text, name;
    if (task.starts_with(kTry)) {
      const Fields asked = decode_fields(task.substr(kTry.size()));
      other_text = find_field(asked, "text");
      name = find_field(asked, "name");
      task = name;
    }
    const auto found = by_name.find(task);
    const Case& one = found != by_name.end() ? *found->second : find_grid_case(task);
    if (one.op == Op::INVALID) return {{"status", "oracle"}, {"detail", "no such case"}};
    if (reduces) return {{"reduced", reduce_case(one, *session, options.seed, kSecondsToReduce)}};
    if (!other_text.empty()) {
      Case other = one;
      other.text = other_text;
      return run_case(other, *session, options.seed, {});
    }
    if (!one.program.empty())
      return run_program_case(one, *session, options.seed, kShareOfOps * options.program_timeout, other_worker);
    Fields fields = run_case(one, *session, options.seed,
                             {.independent_only = options.independent_only, .beside = beside.get(), .kept = &kept});
    if (find_field(fields, "status") == "fail" && (one.op == Op::FUSION || one.op == Op::CALL) && !one.text.empty())
      fields[1].second += blame_in_group(one, *session, options.seed, other_worker);
    return fields;
  };
  return serve_tasks(answer, [&] {
    kept = {};
    beside.reset();
    session.reset();
  });
}

}  // namespace collet::conformance
