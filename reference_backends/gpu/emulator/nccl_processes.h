// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reference_backends/gpu/emulator/nccl_calls.h"

/// \file
/// Communicators whose members are in several processes of one host. The process that makes the unique id has a coordinator,
/// to which each member connects by a Unix-domain socket. Members send their calls with the operands, the coordinator computes,
/// and sends the results. One thread of each process serves all its connections and coordinators; it runs until the process ends.
namespace collet::gpu::emulator {

/// Starts a coordinator and writes the id by which members find it. Returns ncclSystemError if that is not possible.
ncclResult_t make_unique_id(ncclUniqueId* id);

/// Runs a function on the thread that serves the connections. Never called with a lock that the function needs for long.
void run_on_connections(std::function<void()> function);

/// The bytes of a group's operands, as they are sent. For a send, the states of the bytes follow the data.
struct EncodedCalls {
  std::vector<uint8_t> bytes;
  /// Adds a call and returns its place for `operand_bytes` bytes, twice as many for a send. It is valid until the next call
  /// of `add`.
  uint8_t* add(const Call& call, uint64_t operand_bytes);
};

/// The connection of a member to the coordinator of its communicator. May be used from any thread.
class Membership {
 public:
  /// What happens, called by the thread that serves the connections.
  struct Events {
    std::function<void()> ready;  ///< all members have connected
    /// The results of group number `group`, of its calls in their order. For a receive, the states of the bytes follow the data.
    std::function<void(uint64_t group, std::vector<uint8_t> results)> results;
    /// The communicator has failed. Nothing is called afterwards.
    std::function<void(ncclResult_t result, const std::string& why)> failed;
    std::function<void()> finalized;  ///< see finalize
  };

  /// Connects to the coordinator of an id as member `rank` of `members`. Returns null if there is none.
  static std::shared_ptr<Membership> join(const ncclUniqueId& id, int members, int rank, int device, Events events);
  virtual ~Membership() = default;
  /// Sends the calls of a group. Groups have the same order in all members that they concern.
  virtual void submit(uint64_t group, EncodedCalls calls) = 0;
  /// Says that no more calls come. Events::finalized is called when all results have been sent to all members.
  virtual void finalize() = 0;
  /// Closes the connection, after which few more events are called. Without finalize, the communicator fails for the others.
  virtual void leave() = 0;
};

/// True if an id may have been made by make_unique_id.
bool is_unique_id(const ncclUniqueId& id);

}  // namespace collet::gpu::emulator
