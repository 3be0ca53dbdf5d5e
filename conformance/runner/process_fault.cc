// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/process_fault.h"

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>
#include <collet/folder_store.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "conformance/cases/case.h"

namespace collet::conformance {
namespace {

using hlo::Literal;
using Clock = std::chrono::steady_clock;

enum class Fault { Killed, Stopped, Delayed, OtherProgram, OtherOrder };
struct FaultInfo {
  const char* name;
  Code code;  ///< what the other processes get
  const char* text;
};
constexpr std::array<FaultInfo, 5> kFaults{{
    {"killed", Code::Unavailable,
     "A process is killed while a collective runs. The others get UNAVAILABLE, which names it, from the collective "
     "that waits for it, "
     "before the limit, and can form a new group."},
    {"stopped", Code::DeadlineExceeded,
     "A process is stopped while a collective runs. The others get DEADLINE_EXCEEDED, which names it, after the limit, "
     "and can form a "
     "new group."},
    {"delayed", Code::Ok,
     "A process is stopped for a part of the limit while a collective runs. All results are right, and a new group can "
     "be formed."},
    {"other_program", Code::FailedPrecondition,
     "One process runs another program than the others. All get FAILED_PRECONDITION, which names both programs, and "
     "can form a new "
     "group."},
    {"other_order", Code::FailedPrecondition,
     "One process runs two programs in another order than the others. All get FAILED_PRECONDITION, which names both "
     "programs, and can "
     "form a new group."},
}};

constexpr std::string_view kTask = "?fault ";
// Limits of a wait for another process: where one is lost, and where all are to go on, however busy the machine is.
constexpr uint32_t kLimitMs = 3000, kLongLimitMs = 60'000;
constexpr auto kDelay = std::chrono::milliseconds(300);
constexpr int kBefore = 3;                 // launches before the fault
constexpr int kLaunches = 60;              // if no process is lost
constexpr uint64_t kLongestMoment = 3000;  // microseconds from the launch that the fault meets to the fault
constexpr int64_t kElements = 1 << 18;

std::string program(std::string_view name, uint32_t participants, std::string_view op) {
  return fmt::format(
      "HloModule {0}, replica_count={1}\n\nsum {{\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT r = "
      "s32[] "
      "add(a, b)\n}}\n\nENTRY main {{\n  p0 = s32[{2}] parameter(0)\n  x = s32[{2}] {3}(p0, p0)\n  ROOT r = s32[{2}] "
      "all-reduce(x), replica_groups={{}}, to_apply=sum\n}}\n",
      name, participants, kElements, op);
}

// The value of every element of the argument of a process.
int32_t value_of(uint32_t process) {
  return static_cast<int32_t>(process) + 2;
}

// A group that a process joins through a folder.
class Joined {
 public:
  static Expected<std::unique_ptr<Joined>> join(const BackendChoice& backend, const std::string& folder, uint32_t rank,
                                                uint32_t size, uint32_t limit_ms) {
    std::unique_ptr<Joined> out(new Joined(folder, rank));
    out->rank_ = rank;
    out->size_ = size;
    collet_processes group{};
    group.struct_size = sizeof group;
    group.rank = rank;
    group.size = size;
    group.timeout_ms = limit_ms;
    group.store = out->store_.store();
    BackendChoice choice = backend;
    choice.processes = &group;
    COLLET_ASSIGN(out->session_, Session::open(choice));
    COLLET_ASSIGN(const collet_client_info info, out->session_->info());
    out->devices_ = info.device_count;
    return out;
  }

  Expected<Program> compile(std::string_view name, std::string_view op) const {
    return session_->compile(program(name, size_ * devices_, op), {.file = std::string(name)});
  }

  /// Runs a program of `compile` and checks its results.
  Status launch(const Program& which, std::string_view op) const {
    Literal value = Literal::uninitialized(hlo::Shape::array(hlo::Type::S32, {kElements}));
    std::fill_n(value.mutable_data<int32_t>(), kElements, value_of(rank_));
    COLLET_ASSIGN(const std::vector<Literal> results, which.run({&value, 1}));
    int32_t expected = 0;
    for (uint32_t p = 0; p < size_; ++p) {
      const int32_t x = value_of(p);
      expected += static_cast<int32_t>(devices_) * (op == "add" ? x + x : x * x);
    }
    for (const Literal& result : results)
      for (int64_t i = 0; i < kElements; ++i)
        if (result.data<int32_t>()[i] != expected)
          return Status(Code::DataLoss, fmt::format("element {} of a result is {} and should be {}", i,
                                                    result.data<int32_t>()[i], expected));
    return ok_status();
  }

 private:
  Joined(const std::string& folder, uint32_t rank) : store_(folder, rank) {}
  FolderStore store_;
  uint32_t rank_ = 0, size_ = 1, devices_ = 1;
  std::unique_ptr<Session> session_;
};

// Sends this process a signal a little later.
std::thread signal_later(int number, uint64_t microseconds) {
  return std::thread([=] {
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
    kill(getpid(), number);
  });
}

// What one process does until the fault ends it, or all is done.
Status run_until_fault(const Joined& group, Fault fault, bool is_victim, uint64_t moment) {
  COLLET_ASSIGN(const Program usual, group.compile("usual", "add"));
  COLLET_ASSIGN(const Program other, group.compile("unusual", "multiply"));
  if (fault == Fault::OtherProgram) return is_victim ? group.launch(other, "multiply") : group.launch(usual, "add");
  if (fault == Fault::OtherOrder) {
    COLLET_TRY(is_victim ? group.launch(other, "multiply") : group.launch(usual, "add"));
    return is_victim ? group.launch(usual, "add") : group.launch(other, "multiply");
  }
  std::thread later;
  Status status;
  for (int i = 0; status.ok() && (fault != Fault::Delayed || i < kLaunches); ++i) {
    if (is_victim && i == kBefore) later = signal_later(fault == Fault::Killed ? SIGKILL : SIGSTOP, moment);
    status = group.launch(usual, "add");
  }
  if (later.joinable()) later.join();
  return status;
}

// Runs a program in a new group.
Status run_again(const BackendChoice& backend, const std::string& folder, uint32_t rank, uint32_t size) {
  COLLET_ASSIGN(const std::unique_ptr<Joined> group, Joined::join(backend, folder, rank, size, kLongLimitMs));
  COLLET_ASSIGN(const Program usual, group->compile("usual", "add"));
  return group->launch(usual, "add");
}

std::optional<Fault> fault_of(std::string_view name) {
  for (size_t i = 0; i < kFaults.size(); ++i)
    if (name == kFaults[i].name) return static_cast<Fault>(i);
  return std::nullopt;
}

bool loses_process(Fault fault) {
  return fault == Fault::Killed || fault == Fault::Stopped;
}

uint64_t number(const Fields& fields, std::string_view key) {
  return std::strtoull(std::string(find_field(fields, key)).c_str(), nullptr, 10);
}

bool is_stopped(pid_t process) {
  const std::string path = fmt::format("/proc/{}/stat", process);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "r"), std::fclose);
  char text[512] = {};
  if (!file || std::fread(text, 1, sizeof text - 1, file.get()) == 0) return false;
  const std::string_view line(text);
  const size_t end = line.rfind(')');
  return end != std::string_view::npos && end + 2 < line.size() && line[end + 2] == 'T';
}

// Judges the reply of a process; returns what is wrong with it.
std::string judge(Fault fault, uint32_t victim, const Fields& reply) {
  const FaultInfo& info = kFaults[static_cast<size_t>(fault)];
  const auto code = static_cast<Code>(number(reply, "code"));
  const std::string_view message = find_field(reply, "message");
  const std::string_view again = find_field(reply, "again");
  const std::string no_group = again.empty() ? "" : fmt::format("a new group does not work: {}", again);
  if (code != info.code) return fmt::format("{} instead of {}: {}", code_name(code), code_name(info.code), message);
  const auto has = [&](const std::string& part) { return message.find(part) != std::string_view::npos; };
  if (loses_process(fault) && !has(fmt::format("process {} (", victim)))
    return fmt::format("the message does not name process {}: {}", victim, message);
  if (info.code == Code::FailedPrecondition && !(has("'usual'") && has("'unusual'")))
    return fmt::format("the message does not name both programs: {}", message);
  return no_group;
}

}  // namespace

std::vector<ProcessFault> process_faults(uint32_t processes) {
  std::vector<ProcessFault> out;
  if (processes < 2) return out;
  for (const FaultInfo& one : kFaults) out.push_back({std::string(kProcessFault) + one.name, one.text});
  return out;
}

Fields run_process_fault(std::string_view name, const GroupOptions& options, uint64_t seed, double seconds) {
  const std::optional<Fault> fault = fault_of(name.substr(kProcessFault.size()));
  if (!fault) return {{"status", "oracle"}, {"detail", "no such case"}};
  Expected<std::unique_ptr<ProcessGroup>> started = ProcessGroup::start(options);
  if (!started.ok()) return {{"status", "fail"}, {"detail", started.status().to_string()}};
  ProcessGroup& group = **started;
  const uint64_t random = case_seed(name, seed);
  const auto victim = static_cast<uint32_t>(random % options.processes);
  const std::string again = group.folder() + "/again";
  std::error_code ignored;
  std::filesystem::create_directory(again, ignored);
  const std::string task = std::string(kTask) + encode_fields({{"fault", kFaults[static_cast<size_t>(*fault)].name},
                                                               {"victim", std::to_string(victim)},
                                                               {"moment", std::to_string(random / 7 % kLongestMoment)},
                                                               {"again", again}});
  std::vector<bool> needed(options.processes, true);
  if (loses_process(*fault)) needed[victim] = false;
  std::optional<Clock::time_point> stopped;
  const auto meanwhile = [&] {
    if (*fault != Fault::Delayed) return;
    if (!stopped && is_stopped(group.pid(victim))) stopped = Clock::now();
    if (stopped && Clock::now() - *stopped >= kDelay) kill(group.pid(victim), SIGCONT);
  };
  bool time_is_up = false;
  std::vector<MemberReply> replies = group.ask(task, seconds, needed, meanwhile, time_is_up);
  std::string wrong;
  for (uint32_t p = 0; p < options.processes; ++p) {
    if (!needed[p]) {
      if (replies[p].replied) wrong += fmt::format("; process {} was to be lost and went on", p);
      replies[p] = {.replied = true, .fields = {{"status", "pass"}}};
      continue;
    }
    if (!replies[p].replied) continue;
    const std::string one = judge(*fault, victim, replies[p].fields);
    replies[p].fields = {{"status", one.empty() ? "pass" : "fail"}, {"detail", one}};
  }
  Fields out = joined(replies, time_is_up);
  if (find_field(out, "status") == "pass" && !wrong.empty()) out = {{"status", "fail"}, {"detail", wrong.substr(2)}};
  return out;
}

bool is_fault_task(std::string_view task) {
  return task.starts_with(kTask);
}

Fields serve_fault_task(std::string_view task, const BackendChoice& backend, uint32_t process, uint32_t processes,
                        const std::string& store) {
  const Fields fields = decode_fields(task.substr(kTask.size()));
  const std::optional<Fault> fault = fault_of(find_field(fields, "fault"));
  const auto victim = static_cast<uint32_t>(number(fields, "victim"));
  if (!fault || victim >= processes) return {{"code", "13"}, {"message", "no such fault"}};
  auto group = Joined::join(backend, store, process, processes, loses_process(*fault) ? kLimitMs : kLongLimitMs);
  const Status status =
      group.ok() ? run_until_fault(**group, *fault, process == victim, number(fields, "moment")) : group.status();
  // Who waits for a process that has given up because a third one is lost hears of it when that closes its client. A process that closes
  // it because of another program is lost to those that have not compared yet.
  if (group.ok() && loses_process(*fault)) group->reset();
  const bool without = loses_process(*fault);
  const Status again = run_again(backend, std::string(find_field(fields, "again")),
                                 process - (without && process > victim ? 1 : 0), processes - (without ? 1 : 0));
  return {{"status", "pass"},
          {"code", std::to_string(static_cast<int>(status.code()))},
          {"message", status.message()},
          {"again", again.ok() ? "" : again.to_string()}};
}

}  // namespace collet::conformance
