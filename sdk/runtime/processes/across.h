// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"
#include "hlo/program/block.h"
#include "sdk/runtime/processes/device_exchange.h"
#include "sdk/runtime/processes/processes.h"
#include "sdk/runtime/processes/started_exchanges.h"
#include "sdk/runtime/processes/sum_across.h"

/// \file
/// Collectives whose participants are in several processes. Of large arrays that are summed or exchanged, parts are sent, see
/// parts_across.h. Large arrays that are gathered or moved (permute, broadcast) are received at their places in the results. For
/// other collectives the operands that the participants of this process need are fetched from the other processes, and the
/// runtime computes the results on the host.

namespace collet::runtime {

/// A program whose participants are in several processes. Shared by its runs.
struct Across {
  Processes* processes = nullptr;
  Backend* backend = nullptr;  ///< that of the devices, if those of all processes have the table "exchange"; else null
  std::string name;            ///< of the program
  uint32_t replicas = 1, partitions = 1;
  std::vector<uint32_t> numbers;  ///< of the participants in this process: replica * partitions + partition, ascending
  std::vector<uint32_t> assignment;  ///< the device of each of all participants, numbered over all processes
  std::vector<uint32_t> place;       ///< the process of each of all participants
  std::vector<uint32_t> ordinals;    ///< of each of all participants among those in its process
  std::vector<uint32_t> members;     ///< the processes that take part, ascending
  hlo::ContentId content;            ///< equal in processes that run the same program

  /// What this process and another one exchange in a collective. The lists are ascending.
  struct Link {
    uint32_t process = 0;
    /// A participant here and one there, of which one needs the operands of the other.
    std::vector<std::pair<uint32_t, uint32_t>> pairs;
    std::vector<uint32_t> mine;  ///< the participants here that are in `pairs`
    /// The participants here whose operands are needed there, each with one that needs them.
    std::vector<std::pair<uint32_t, uint32_t>> sends;
    std::vector<uint32_t> receives;  ///< the participants there whose operands are needed here
  };
  /// What belongs to each of all participants in a collective: see ordered_groups() and dependencies().
  struct Partners {
    std::vector<std::vector<uint32_t>> groups, needs;
    std::vector<Link> links;                   ///< ascending
    uint32_t ordinal = 0;                      ///< of the collective among those of the program
    std::optional<DeviceExchange> on_devices;  ///< if the backend runs it
  };
  /// Returns the partners in a collective. Thread-safe.
  Expected<const Partners*> partners_of(const hlo::Module& module, const hlo::Instruction& instr, hlo::InstrId id);

  std::mutex mutex;
  std::map<hlo::InstrId, Partners> partners;     ///< by collective; under `mutex`
  std::map<hlo::InstrId, uint32_t> collectives;  ///< numbers of the program's collectives; under `mutex`
  ScratchPool scratch;
  WorkerPool workers;  ///< for collectives that run beside launches
};

/// The exchange of one run with the other processes. Used by one thread at a time.
class Exchange {
 public:
  /// `launch`: see Processes::next_launch.
  Exchange(Across& across, uint64_t launch) : across_(across), launch_(launch) {}

  /// Runs a collective for the participants `present` of this process (numbers, ascending); see run_collective. `targets` is
  /// empty, or has the place of each result of each of them, null where it is not in host memory. Results may be views of
  /// these places.
  Expected<std::vector<std::vector<hlo::Literal>>> run(const hlo::Module& module, const hlo::Instruction& instr,
                                                       hlo::InstrId id, std::span<const uint32_t> present,
                                                       std::vector<std::vector<hlo::Literal>> operands,
                                                       std::span<const std::vector<void*>> targets);
  /// True if the backend runs a collective by links of the devices: in all processes, or in none.
  Expected<bool> is_on_devices(const hlo::Module& module, const hlo::Instruction& instr, hlo::InstrId id);
  /// Runs such a collective for the participants `present`; `memory` has that of each of them.
  Status run_on_devices(const hlo::Module& module, const hlo::Instruction& instr, hlo::InstrId id,
                        std::span<const uint32_t> present, const std::vector<ExchangeMemory>& memory);
  /// Tells the other processes that the run has failed here, so that they do not wait for it.
  void abandon(const Status& failure);

 private:
  struct Header;
  struct Incoming;

  struct Partner;

  uint64_t tag(uint32_t from, uint32_t process, uint32_t sequence, uint32_t part) const;
  /// The tag of a header of one process for another one.
  uint64_t header_tag(uint32_t from, uint32_t to, uint32_t sequence) const;
  /// The tag of an operand of a participant, or of all messages of a group. Messages of other programs or collectives, or of another
  /// size, have another one.
  uint64_t data_tag(const Header& header, uint32_t participant, uint32_t process, uint32_t sequence,
                    uint32_t operand) const;
  Header header_of(const hlo::Instruction& instr, const Across::Partners& partners, std::span<const uint32_t> present,
                   uint64_t bytes) const;
  /// Returns the collective as messages name it.
  std::string text_of(const hlo::Instruction& instr) const;
  /// Waits until all processes of a group are at this collective, and returns the turn of their exchange. The group's first process
  /// decides.
  Expected<uint64_t> agree(const DeviceExchange::Group& group, const ExchangeTurns::Members& members, const Header& own,
                           const std::string& what);
  Status check(const Header& header, const Header& own, uint32_t process, const std::string& what) const;
  /// True if the sender of a header, which runs the collective, has a participant of its process in it.
  bool has(const Header& header, uint32_t participant) const;
  /// An error if a member of the group of one of those present, which is in this process, is not there: others would wait for it.
  Status check_present(const Across::Partners& partners, std::span<const uint32_t> present,
                       const std::string& what) const;

  Across& across_;
  const uint64_t launch_;
  /// How many headers this process and another one have exchanged. Both count the same: the order of what they run together is that of
  /// the program, whichever way their participants take.
  std::map<uint32_t, uint32_t> headers_;
  /// How many sums and all-to-alls of a group there were, by its members: all of these count the same.
  std::map<std::vector<uint32_t>, uint32_t> rounds_;
};

}  // namespace collet::runtime
