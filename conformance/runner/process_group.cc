// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/process_group.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "conformance/runner/worker_process.h"

namespace collet::conformance {
namespace {

constexpr int kTickMs = 5;

std::string printed_by(Worker& worker) {
  drain(worker.output.get(), worker.printed);
  keep_end(worker.printed);
  return worker.printed.empty() ? std::string() : "; it printed: " + worker.printed;
}

}  // namespace

ProcessGroup::~ProcessGroup() = default;

Expected<std::unique_ptr<ProcessGroup>> ProcessGroup::start(const GroupOptions& options) {
  std::unique_ptr<ProcessGroup> out(new ProcessGroup(options));
  if (out->folder().empty()) return resource_exhausted("no temporary folder for the processes of a group");
  const std::string store = out->folder() + "/store";
  std::error_code failure;
  std::filesystem::create_directory(store, failure);
  if (failure) return resource_exhausted(store + ": " + failure.message());
  for (uint32_t p = 0; p < options.processes; ++p) {
    std::vector<std::string> arguments = options.arguments;
    arguments.insert(arguments.end(), {"--process", std::to_string(p), "--store", store});
    out->workers_.push_back(std::make_unique<Worker>());
    COLLET_TRY(conformance::start(*out->workers_.back(), arguments, out->folder()));
  }
  return out;
}

pid_t ProcessGroup::pid(uint32_t process) const {
  return workers_[process]->pid;
}

std::vector<MemberReply> ProcessGroup::ask(const std::string& task, double seconds, const std::vector<bool>& needed,
                                           const std::function<void()>& meanwhile, bool& time_is_up) {
  std::vector<MemberReply> replies(workers_.size());
  for (const auto& worker : workers_) {
    worker->printed.clear();
    set_limit(*worker, seconds);
    send(worker->tasks.get(), task + "\n");  // if the process has died, this shows when its replies end
  }
  time_is_up = false;
  while (true) {
    bool all = true;
    std::vector<pollfd> fds;
    for (size_t p = 0; p < workers_.size(); ++p) {
      Worker& worker = *workers_[p];
      if (!worker.alive() || replies[p].replied) continue;
      if (needed[p]) all = false;
      fds.push_back({worker.replies.get(), POLLIN, 0});
      fds.push_back({worker.output.get(), POLLIN, 0});
    }
    if (all) return replies;
    poll(fds.data(), fds.size(), kTickMs);
    if (meanwhile) meanwhile();
    bool is_late = true;  // if it is late for all
    for (size_t p = 0; p < workers_.size(); ++p) {
      Worker& worker = *workers_[p];
      if (!worker.alive() || replies[p].replied) continue;
      if (!drain(worker.output.get(), worker.printed)) worker.output.reset();
      keep_end(worker.printed);
      const bool open = drain(worker.replies.get(), worker.pending);
      if (const size_t end = worker.pending.find('\n'); end != std::string::npos) {
        replies[p] = {.replied = true, .fields = decode_fields(worker.pending.substr(0, end))};
        worker.pending.erase(0, end + 1);
      } else if (!open) {
        const std::string how = death(worker.reap());
        replies[p].ended = how + printed_by(worker);
      } else if (options_.memory_bytes > 0 && resident_bytes(worker.pid) > options_.memory_bytes) {
        worker.stop();
        replies[p].ended = fmt::format("was ended: more than {} MiB of memory", options_.memory_bytes >> 20);
      } else {
        if (needed[p] && !out_of_time(worker)) is_late = false;
        continue;
      }
      is_late = false;
    }
    if (!is_late) continue;
    time_is_up = true;
    return replies;
  }
}

Fields joined(const std::vector<MemberReply>& replies, bool time_is_up) {
  const auto status = [](const MemberReply& one) { return find_field(one.fields, "status"); };
  // What the others say of it.
  std::string said;
  for (size_t p = 0; p < replies.size(); ++p)
    if (replies[p].replied && status(replies[p]) != "pass")
      said += fmt::format("{}process {}: {}", said.empty() ? "" : "; ", p, find_field(replies[p].fields, "detail"));
  std::string silent, ended;
  for (size_t p = 0; p < replies.size(); ++p) {
    if (!replies[p].ended.empty())
      ended += fmt::format("{}process {} {}", ended.empty() ? "" : "; ", p, replies[p].ended);
    else if (!replies[p].replied)
      silent += fmt::format("{} {}", silent.empty() ? "" : ",", p);
  }
  const std::string more = said.empty() ? "" : "; " + said;
  if (!ended.empty()) return {{"status", "crash"}, {"detail", ended + more}};
  if (time_is_up)
    return {{"status", "timeout"}, {"detail", fmt::format("no answer in time from process{}{}", silent, more)}};
  for (const std::string_view which : {"fail", "oracle", "unsupported"})
    for (const MemberReply& one : replies) {
      if (status(one) != which) continue;
      Fields out = one.fields;
      for (auto& [key, value] : out)
        if (key == "detail") value = said;
      return out;
    }
  return replies[0].fields;
}

}  // namespace collet::conformance
