// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/serve_processes.h"

#include <fmt/format.h>
#include <collet/folder_store.hpp>

#include <algorithm>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "conformance/cases/participants.h"
#include "conformance/runner/describe_backend.h"
#include "conformance/runner/participant_case.h"
#include "conformance/runner/process_fault.h"
#include "conformance/runner/process_group.h"

namespace collet::conformance {
namespace {

// The longest wait of a process for another one, as a share of the time of a case: who waits says so before the time is up.
constexpr double kShareOfWait = 0.5;

bool is_good(const Fields& fields) {
  const std::string_view status = find_field(fields, "status");
  return status == "pass" || status == "unsupported" || !find_field(fields, "name").empty();
}

// Gives each task to the processes of a group, and starts a new group after each failure.
int serve_group(const ConformOptions& options, const std::vector<std::string>& arguments) {
  const GroupOptions how{options.processes, arguments, options.memory_bytes / options.processes};
  const std::vector<bool> all(options.processes, true);
  std::unique_ptr<ProcessGroup> group;
  const auto answer = [&](std::string_view task) -> Fields {
    if (task.starts_with(kProcessFault)) {
      group.reset();
      return run_process_fault(task, how, options.seed, options.timeout);
    }
    if (!group) {
      Expected<std::unique_ptr<ProcessGroup>> started = ProcessGroup::start(how);
      if (!started.ok()) return describe_failure(started.status());
      group = *std::move(started);
    }
    bool time_is_up = false;
    const std::vector<MemberReply> replies = group->ask(std::string(task), options.timeout, all, {}, time_is_up);
    Fields out = joined(replies, time_is_up);
    if (!is_good(out)) group.reset();
    if (task == kProbe && find_field(out, "name").empty() && find_field(out, "error").empty())
      return describe_failure(
          Status(time_is_up ? Code::DeadlineExceeded : Code::Unavailable, std::string(find_field(out, "detail"))));
    return out;
  };
  return serve_tasks(answer, [&] { group.reset(); });
}

// One process of a group. It joins the others when the first task comes.
int serve_member(const ConformOptions& options) {
  const auto process = static_cast<uint32_t>(options.process);
  std::vector<ParticipantCase> cases;  // made when the first one is asked for
  std::unordered_map<std::string_view, const ParticipantCase*> by_name;
  FolderStore store(options.store, process);
  std::unique_ptr<Session> session;
  uint32_t devices = 0;
  const auto open = [&]() -> Status {
    collet_processes group{};
    group.struct_size = sizeof group;
    group.rank = process;
    group.size = options.processes;
    group.timeout_ms = static_cast<uint32_t>(std::clamp(kShareOfWait * options.timeout * 1000, 1.0, 1e9));
    group.store = store.store();
    BackendChoice backend = options.backend;
    backend.processes = &group;
    COLLET_ASSIGN(session, Session::open(backend));
    COLLET_ASSIGN(const collet_client_info info, session->info());
    devices = info.device_count;
    if (devices == options.backend.devices) return ok_status();
    return failed_precondition(fmt::format("the backend has {} devices and not {}, which --devices asks for", devices,
                                           options.backend.devices));
  };
  const auto answer = [&](std::string_view task) -> Fields {
    if (is_fault_task(task)) return serve_fault_task(task, options.backend, process, options.processes, options.store);
    if (!session) {
      if (const Status opened = open(); !opened.ok()) {
        session.reset();
        return describe_failure(opened);
      }
    }
    if (task == kProbe) return describe_backend(*session);
    if (cases.empty()) {
      cases = participant_cases(options.processes, options.backend.devices, options.full);
      for (const ParticipantCase& one : cases) by_name.emplace(one.one.name, &one);
    }
    const auto found = by_name.find(task);
    if (found == by_name.end()) return {{"status", "oracle"}, {"detail", "no such case"}};
    return run_participant_case(*found->second, *session, case_seed(task, options.seed), process * devices);
  };
  return serve_tasks(answer, [&] { session.reset(); });
}

}  // namespace

std::vector<Case> cases_of_processes(const ConformOptions& options) {
  std::vector<Case> out;
  for (const ProcessFault& fault : process_faults(options.processes))
    out.push_back({.name = fault.name, .text = fault.text + "\n"});
  for (ParticipantCase& one : participant_cases(options.processes, options.backend.devices, options.full))
    out.push_back(std::move(one.one));
  return out;
}

int serve_processes(const ConformOptions& options, const std::vector<std::string>& arguments) {
  return options.process < 0 ? serve_group(options, arguments) : serve_member(options);
}

}  // namespace collet::conformance
