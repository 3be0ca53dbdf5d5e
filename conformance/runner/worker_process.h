// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hlo/base/status.h"

/// \file
/// One worker process, from the side of the process that has started it: its pipes, its end, and its time limit.

namespace collet::conformance {

/// File descriptors of the pipes in the worker.
constexpr int kTaskFd = 3, kReplyFd = 4;
/// Exit codes of a worker. That of a good end is none that other code is likely to end a process with: functions that run when a
/// process exits may end it by exit(0) or _exit(0) before all have run.
constexpr int kEndedWell = 97, kLostDescriptors = 98;

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();
  int get() const { return fd_; }
  void reset() { *this = Fd(); }

 private:
  int fd_ = -1;
};

struct Worker {
  using Clock = std::chrono::steady_clock;

  pid_t pid = -1;
  Fd tasks, replies, output;
  std::string pending;  ///< incomplete line of a reply
  std::string printed;  ///< the end of the output that it printed to stdout and stderr during the current task
  bool busy = false, fresh = true;
  size_t task = 0;
  size_t next = 0, end = 0;  ///< the tasks that only this worker runs, because they follow `task`
  std::vector<size_t> done;  ///< the last few tasks of this process
  Clock::time_point start, deadline;
  double seconds = 0;  ///< seconds that the task may take
  double queued = 0;   ///< seconds that the worker had waited for a processor when the task began

  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() { stop(); }

  bool alive() const { return pid > 0; }
  /// Kills the process and its children; returns its wait status.
  int stop();
  int reap();
};

/// Starts this program again as a worker with these arguments. Its temporary files stand in `folder`, if that is not empty.
Status start(Worker& worker, const std::vector<std::string>& arguments, const std::string& folder);
bool send(int fd, std::string_view text);
/// Appends available data; returns false at the end of the file.
bool drain(int fd, std::string& text);
/// Shortens what a worker has printed to its end.
void keep_end(std::string& text);
uint64_t resident_bytes(pid_t pid);
/// Says how a process has ended that has this wait status.
std::string death(int status);
bool has_ended_well(int status);
/// Starts the time of a task now.
void set_limit(Worker& worker, double seconds);
/// True if the time is over. The result must not depend on other processes: time spent waiting for a processor does not count.
bool out_of_time(Worker& worker);

}  // namespace collet::conformance
