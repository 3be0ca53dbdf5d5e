// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hlo/base/status.h"

/// \file
/// Runs tasks in child processes, so that a crash, a hang or a memory leak affects one task only. The parent starts its
/// own program again as a worker, writes one task per line and reads one reply per line. A dead or unresponsive worker
/// is replaced, and the remaining tasks continue.

namespace collet::conformance {

/// A reply as fields, which is sent as one line.
using Fields = std::vector<std::pair<std::string, std::string>>;
std::string encode_fields(const Fields& fields);
Fields decode_fields(std::string_view line);
/// Returns the value of `key`; empty if there is none.
std::string_view find_field(const Fields& fields, std::string_view key);
/// A reply with this field, whatever its value, is the worker's last one: the next task is run by a new process.
constexpr std::string_view kRetires = "retires";
inline void add_retires(Fields& fields) {
  fields.emplace_back(kRetires, "1");
}

/// The end of a task: its reply, a crash or a timeout.
struct TaskResult {
  enum class Kind : uint8_t { Replied, Crashed, TimedOut, OutOfMemory };
  Kind kind = Kind::Replied;
  Fields reply;
  std::string detail;  ///< the signal or status with which the worker ended, and the end of its output
  double seconds = 0;
  std::vector<size_t> before = {};  ///< the last tasks that the same process had run before, the latest first
};

struct PoolOptions {
  std::vector<std::string> arguments;  ///< arguments of the worker's command line after the program's name
  unsigned jobs = 1;
  uint64_t memory_bytes = 0;              ///< largest resident memory of a worker; 0: no limit
  std::function<double(size_t)> timeout;  ///< seconds that a task may take
  double start_seconds = 30;              ///< additional seconds for a worker's first task, in which it starts
  bool judge_end = false;  ///< a worker runs one task and must then end well by itself; otherwise the task has failed
  /// True if task i uses what the process of task i-1 has kept: one worker runs the two, one after the other. May be empty.
  std::function<bool(size_t)> follows = {};
  /// Called after each task: if it returns true, the run and running tasks are ended. May be empty.
  std::function<bool()> stop = {};
  /// Called when the run is over, for each idle worker that does not end well once its tasks have ended, within the time of
  /// its last task: with that task, and how it ended. If it is empty, idle workers are killed.
  std::function<void(size_t task, const TaskResult& end)> ended = {};
};

/// Runs tasks 0 ... count-1 and calls `done` on this thread for each when it ends. An error means that a worker cannot
/// be started at all. TMPDIR of the workers is a folder that is removed at the end, with what killed workers left there.
Status run_tasks(size_t count, const PoolOptions& options, const std::function<std::string(size_t)>& task,
                 const std::function<void(size_t, const TaskResult&)>& done);

/// Ends every run_tasks of this process, soon and for good: it kills its workers and returns CANCELLED. A signal handler may call
/// this.
void interrupt_tasks();

/// Runs the worker: answers tasks until the parent closes the pipe, then calls `close`, which closes what the tasks have opened.
/// Returns the exit code with which the process must end. The parent takes every other one for a failure, 0 too.
int serve_tasks(const std::function<Fields(std::string_view task)>& answer, const std::function<void()>& close);

}  // namespace collet::conformance
