// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reference_backends/gpu/library/library_api.h"

/// \file
/// The calls of NCCL's functions by the members of a communicator: whether they fit together, and what they compute. The
/// same for members within one process and in several.
namespace collet::gpu::emulator {

enum class CallKind : uint32_t { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kSend, kReceive };

/// Returns the name of the function.
const char* name_of(CallKind kind);

/// Returns the bytes of an element; 0 for an unknown type.
size_t bytes_of(ncclDataType_t type);

/// A call of one member.
struct Call {
  CallKind kind;
  uint64_t from;  ///< address of the operand
  uint64_t to;    ///< address of the result
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t combine;
  int peer;  ///< the root of a broadcast, or the other member of a send or receive
  ncclComm_t communicator;
  CUstream stream;

  bool is_between_two() const { return kind == CallKind::kSend || kind == CallKind::kReceive; }
  /// Returns the bytes that the call of member `rank` of `members` reads.
  uint64_t operand_bytes(size_t rank, size_t members) const;
  /// Returns the bytes that it writes.
  uint64_t result_bytes(size_t members) const;
};

/// The calls of all members of a communicator in one group, by member.
using GroupCalls = std::vector<std::vector<Call>>;

/// Returns why the calls of a group do not fit together; empty if they do.
std::string contradiction(const GroupCalls& calls);

/// Returns the calls of all members for each collective of a group whose calls fit together.
std::vector<std::vector<const Call*>> collectives_of(const GroupCalls& calls);

/// A send and the receive of the same data.
struct Transfer {
  size_t from;  ///< member that sends
  size_t to;    ///< member that receives
  const Call* send;
  const Call* receive;
};
/// Returns the transfers of a group whose calls fit together.
std::vector<Transfer> transfers_of(const GroupCalls& calls);

/// Returns the results of one collective, by member. `calls` are the calls of all members, and `operands` point to what
/// they read.
std::vector<std::vector<uint8_t>> results_of(const std::vector<const Call*>& calls,
                                             const std::vector<const uint8_t*>& operands);

}  // namespace collet::gpu::emulator
