// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/processes.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "hlo/base/status.h"
#include "sdk/runtime/backend/backend.h"
#include "sdk/runtime/processes/connection.h"
#include "sdk/runtime/processes/device_exchange.h"

/// \file
/// The processes of a group, from the side of one of them: what devices they have, and the messages between them.

namespace collet::runtime {

/// A device of a group of processes.
struct GlobalDevice {
  uint32_t process = 0;
  uint32_t device = 0;  ///< its number in that process
  std::string kind;
  int32_t coordinates[4] = {};
};

/// A process's membership in a group. Thread-safe.
class Processes {
 public:
  /// Exchanges descriptions with the other processes through the store, and connects to them. FAILED_PRECONDITION names
  /// a process with another version of Collet, backend or kind of device; DEADLINE_EXCEEDED names one that is missing.
  static Expected<std::unique_ptr<Processes>> join(const Backend& backend, const collet_processes& group);
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  uint32_t rank() const { return rank_; }
  uint32_t size() const { return static_cast<uint32_t>(processes_.size()); }
  /// The longest wait for another process.
  uint32_t timeout_ms() const { return timeout_ms_; }
  /// All devices: those of process 0 first, then those of process 1, and so on.
  std::span<const GlobalDevice> devices() const { return devices_; }
  /// Returns the process as messages name it: "process 1 (host 'a', pid 17)".
  std::string name(uint32_t process) const;

  /// Returns the number of the next program that these processes start together. The numbers agree if all of them start
  /// their common programs in the same order.
  uint64_t next_launch(std::span<const uint32_t> processes);

  /// Sends and receives messages as collet_transport does. `received` gets the index of each message that has been
  /// received; an error that it returns ends the exchange. `what` says what waits, for error messages. DEADLINE_EXCEEDED names the
  /// process that it waited for, the one that this waits for in turn, and so on; UNAVAILABLE names all that are lost. After both, this
  /// process leaves the group: it closes its connections when its other exchanges have ended, and says why, so that nobody waits for it.
  Status exchange(std::span<const collet_message> sends, std::span<const collet_message> receives,
                  const std::function<Status(uint32_t)>& received, const std::string& what);
  /// Sends a message of which a copy is made, without waiting. Errors are ignored: it tells of another one.
  void post(const collet_message& message);

  /// The failure with which this process has left the group; success if it has not.
  Status lost() const { return connection_.lost(); }
  /// True if the backends of all processes have the table "exchange".
  bool all_have_exchange() const;
  /// The turns of exchanges that the backend runs.
  ExchangeTurns& turns() { return turns_; }
  /// Returns which of these processes are known to be lost, as a message continues: "; process 1 (...) is lost".
  std::string lost_among(std::span<const uint32_t> processes);
  /// Leaves the group because an exchange of the backend with these processes has failed. Returns the failure, which names those that are
  /// lost or, after a limit, those for which it waited.
  Status give_up(const Status& failure, std::span<const uint32_t> processes, const std::string& what);

 private:
  struct Process {
    std::string host, boot;  // name of the host, and a number that only processes on the same host share
    uint64_t pid = 0;
    std::string library, backend, backend_version;
    bool has_exchange = false;
    std::vector<GlobalDevice> devices;
  };

  /// An exchange that has not ended.
  struct Pending;
  /// What a process tells the others when it has waited too long.
  struct Notice;

  Processes() = default;
  Status meet(const Backend& backend, const collet_processes& group, std::string& prefix);
  Status check_alike() const;
  Status connect(const collet_processes& group, const std::string& prefix);
  std::string default_address() const;
  std::string no_answer(const std::string& who) const;
  /// Tells the others through the store why this process cannot connect, and returns that with what they told.
  Status told_by_others(const collet_store& store, const std::string& prefix, const Status& failure) const;
  /// Looks for exchanges that wait too long, until the end.
  void watch();
  static uint64_t notice_tag(uint32_t sender, uint32_t number);
  /// Tells the others for whom this process waits. Returns those that are lost, as a message continues.
  std::string post_notice(const Connection::Use& use, uint32_t number, uint32_t process);
  /// Tells the others for whom this process waits, and hears the same from those that have waited for half of the limit. Returns the process
  /// that does not answer, with those for which it waits in turn, as messages name them.
  std::string ask_who_waits(const Connection::Use& use, uint32_t process, uint32_t number);
  /// Returns those of these processes to which there is no connection.
  std::vector<uint32_t> lost(const Connection::Use& use, std::span<const uint32_t> processes) const;
  static std::string write(const Process& process);
  static Status read(std::string_view bytes, Process& out);

  uint32_t rank_ = 0;
  uint32_t timeout_ms_ = 0;
  std::vector<Process> processes_;
  std::vector<GlobalDevice> devices_;
  ExchangeTurns turns_;
  Connection connection_;  // not open in a group of one process
  std::mutex mutex_;       // guards the following members
  uint32_t notices_ = 0;   // that this process has sent
  std::map<std::vector<uint32_t>, uint64_t> launches_;
  std::list<Pending*> pending_;  // in the order of their beginnings
  bool closing_ = false;
  std::condition_variable changed_;  // an exchange has been asked for whom it waits, or closing_
  std::thread watcher_;              // of a group of several processes
};

}  // namespace collet::runtime
