// SPDX-License-Identifier: Apache-2.0
// What a worker does: it answers tasks on a backend that it has open.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "conformance/cases/declared.h"
#include "conformance/contract/contract.h"
#include "conformance/runner/batch.h"
#include "conformance/runner/case_file.h"
#include "conformance/runner/conform.h"
#include "conformance/runner/describe_backend.h"
#include "conformance/runner/offered_program.h"
#include "conformance/runner/program_case.h"
#include "conformance/runner/program_tasks.h"
#include "conformance/runner/random_case.h"
#include "conformance/runner/run_case.h"
#include "conformance/runner/serve_processes.h"
#include "conformance/runner/soak.h"
#include "conformance/runner/tasks.h"
#include "conformance/runner/workers.h"
#include "hlo/base/files.h"

namespace collet::conformance {
namespace {

// The name of the task in which a worker leaves an instance open and ends.
constexpr std::string_view kLeavesOpen = "contract/?leaves_open";
constexpr double kSecondsToEnd = 4;
// The share of a program's time in which its ops run one by one.
constexpr double kShareOfOps = 0.5;

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

}  // namespace

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
