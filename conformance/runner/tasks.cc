// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "conformance/runner/case_result.h"
#include "conformance/runner/describe_backend.h"
#include "conformance/runner/program_tasks.h"

namespace collet::conformance {
namespace {

// A worker that is a group of processes may take so many seconds longer than the limit of a case.
constexpr double kSecondsOfGroup = 15;
// The contract case that reports why the runtime does not accept a backend.
constexpr std::string_view kDescribesItself = "contract/lifecycle/describes_itself";

}  // namespace

bool is_contract(std::string_view name) {
  return name.starts_with("contract/");
}

bool is_whole(std::string_view name) {
  return name.starts_with(kWholeProgram);
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

double margin(const ConformOptions& options) {
  return options.processes > 0 ? kSecondsOfGroup : 0;
}

PoolOptions pool_of(const ConformOptions& options) {
  PoolOptions pool;
  pool.arguments = arguments_of(options, options.backend);
  pool.jobs = options.jobs;
  pool.memory_bytes = options.memory_bytes;
  pool.timeout = [&](size_t) { return options.timeout + margin(options); };
  pool.start_seconds = 0;  // the limit holds for opening the backend, too
  return pool;
}

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

bool describes_itself_wrongly(const PoolOptions& pool) {
  TaskResult answer;
  const Status ran = run_tasks(
      1, pool, [](size_t) { return std::string(kDescribesItself); },
      [&](size_t, const TaskResult& result) { answer = result; });
  return ran.ok() && answer.kind == TaskResult::Kind::Replied && find_field(answer.reply, "status") == "fail" &&
         find_field(answer.reply, "error").empty();
}

}  // namespace collet::conformance
