// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/tables.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"
#include "sdk/runtime/backend/backend.h"
#include "sdk/runtime/memory/memory.h"

/// \file
/// Collectives over several processes that the backend runs by links of its devices: the table "exchange" of tables.h.

namespace collet::runtime {

class Processes;

/// Where a participant of a program runs.
struct ParticipantPlace {
  uint32_t process = 0;
  uint32_t device = 0;  ///< its number in that process
};

/// What a backend does for a collective. The same in all processes.
struct DeviceExchange {
  /// What becomes of one operand, in the result of the same number.
  struct Part {
    uint32_t kind = COLLET_EXCHANGE_COPIES, element = 0, combine = 0;
    uint64_t count = 0;
    std::vector<collet_exchange_copy> copies;
  };
  /// Participants that exchange arrays with each other.
  struct Group {
    std::vector<uint32_t> participants;           ///< the members in their order
    std::vector<uint32_t> processes;              ///< that have members, ascending
    std::vector<collet_exchange_member> members;  ///< without buffers
    std::vector<Part> parts;                      ///< by operand
  };
  std::vector<Group> groups;
  std::vector<uint32_t> empty;  ///< participants whose results are zeros
};

/// Returns what the backend does for a collective of the groups of each of all participants; nullopt if it does not take it.
std::optional<DeviceExchange> device_exchange(const hlo::Module& module, const hlo::Instruction& instr,
                                              const std::vector<std::vector<uint32_t>>& groups,
                                              const std::vector<ParticipantPlace>& places, Backend& backend);

/// The turns of exchanges with the same members: each process runs them one after another, in the order of their turns. Thread-safe.
class ExchangeTurns {
 public:
  using Members = std::vector<std::pair<uint32_t, uint32_t>>;  ///< process and device of each

  /// Returns the next turn. The process that leads the group gives them out.
  uint64_t next(const Members& members);
  /// Waits until all earlier turns have ended. Fails if this process leaves the group meanwhile.
  Status begin(const Members& members, uint64_t turn, const Processes& processes);
  void end(const Members& members);

 private:
  struct Count {
    uint64_t given = 0, ended = 0;
  };
  std::mutex mutex_;  // guards the following members
  std::map<Members, Count> counts_;
  std::condition_variable ended_;
};

/// The memory of a participant in an exchange: that of its operands and results.
struct ExchangeMemory {
  std::vector<Memory*> operands, results;  ///< null for arrays of no bytes
};

/// Runs the exchanges of a group; `memory` has that of each participant in this process, by participant. All processes of the group
/// call it with the same `tag`, which no other call has. After a failure this process has left the group of processes.
Status exchange_on_devices(Backend& backend, Processes& processes, const DeviceExchange::Group& group,
                           const std::map<uint32_t, ExchangeMemory>& memory, uint64_t tag, const std::string& what);

}  // namespace collet::runtime
