// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "conformance/runner/worker_process.h"
#include "conformance/runner/workers.h"
#include "hlo/base/status.h"
#include "hlo/base/temporary_folder.h"

/// \file
/// The processes of a worker of `collet conform --processes`: each task is given to all, and the replies are put together.

namespace collet::conformance {

/// What became of a task in one of the processes.
struct MemberReply {
  bool replied = false;
  Fields fields = {};
  std::string ended = {};  ///< how the process has ended; empty if it is alive
};

struct GroupOptions {
  uint32_t processes = 1;
  std::vector<std::string> arguments;  ///< of the command line of each process; --process and --store are added
  uint64_t memory_bytes = 0;           ///< largest resident memory of a process; 0: no limit
};

/// A running group. Its processes are killed with it.
class ProcessGroup {
 public:
  static Expected<std::unique_ptr<ProcessGroup>> start(const GroupOptions& options);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  /// Gives all processes a task and waits until each has replied or ended, `seconds` at most; `time_is_up` says whether some have
  /// not. Processes for which `needed` is false are not waited for. `meanwhile` is called several times while it waits.
  std::vector<MemberReply> ask(const std::string& task, double seconds, const std::vector<bool>& needed,
                               const std::function<void()>& meanwhile, bool& time_is_up);
  /// Returns the number of a process, as the system has it.
  pid_t pid(uint32_t process) const;
  /// A folder that exists as long as the group.
  const std::string& folder() const { return folder_.path(); }

 private:
  explicit ProcessGroup(const GroupOptions& options) : options_(options) {}

  const GroupOptions options_;
  TemporaryFolder folder_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

/// Puts the replies of all processes together: if one has ended, "crash"; if the time is up, "timeout"; else the first reply whose
/// status is not "pass". The detail names the processes.
Fields joined(const std::vector<MemberReply>& replies, bool time_is_up);

}  // namespace collet::conformance
