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
/// Tasks in child processes, so that a crash, a hang or a memory leak costs one task. The parent starts its own program
/// again as a worker, writes a task a line and reads a reply a line; a dead or silent worker is replaced, and the tasks
/// behind it go on.

namespace collet::conformance {

/// A reply in fields, carried as one line.
using Fields = std::vector<std::pair<std::string, std::string>>;
std::string encode_fields(const Fields& fields);
Fields decode_fields(std::string_view line);
/// The value of `key`; empty when there is none.
std::string_view find_field(const Fields& fields, std::string_view key);
/// A reply with this field, whatever its value, is the worker's last one: the next task gets a new process.
constexpr std::string_view kRetires = "retires";
inline void add_retires(Fields& fields) {
  fields.emplace_back(kRetires, "1");
}

/// The end of a task: its reply, a crash or a timeout.
struct TaskResult {
  enum class Kind : uint8_t { Replied, Crashed, TimedOut, OutOfMemory };
  Kind kind = Kind::Replied;
  Fields reply;
  std::string detail;  ///< what killed the worker, and the end of what it printed
  double seconds = 0;
  std::vector<size_t> before = {};  ///< of a crash: the last tasks that the same process had done, the latest first
};

struct PoolOptions {
  std::vector<std::string> arguments;  ///< of the worker's command line, behind the program's name
  unsigned jobs = 1;
  uint64_t memory_bytes = 0;              ///< resident memory of a worker, at most; 0: no limit
  std::function<double(size_t)> timeout;  ///< seconds that a task may take
  double start_seconds = 30;              ///< granted to a worker's first task on top
  bool judge_end =
      false;  ///< after its one task a worker has to end by itself, with exit code 0; else the task has failed
  std::function<bool()> stop = {};  ///< asked after each task: true ends the run, and what is running. May be empty
};

/// Runs tasks 0 ... count-1 and calls `done` for each as it ends, on this thread. The error is one of the system: a
/// worker that cannot be started at all.
Status run_tasks(size_t count, const PoolOptions& options, const std::function<std::string(size_t)>& task,
                 const std::function<void(size_t, const TaskResult&)>& done);

/// The worker's side: answers tasks until the parent goes away; an exit code.
int serve_tasks(const std::function<Fields(std::string_view task)>& answer);

}  // namespace collet::conformance
