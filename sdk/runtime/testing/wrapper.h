// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/backend.h>

#include <atomic>
#include <cstdint>

/// \file
/// For tests: a backend that stands before another one and changes what passes. It is told by options of open: "inner" is
/// the path of the backend behind it, "control" the address of a Control in decimal.

namespace collet::testing {

/// Shared by a test and the wrapper that it opens.
struct Control {
  /// Calls to count: bits of kAlloc, kCopy, kCompile, kExecute, kSupports.
  uint32_t counted = 0;
  /// The counted call with this number, from 0, fails; -1: none does.
  std::atomic<int64_t> fail_at{-1};
  bool for_good = false;  ///< and all that come after it
  std::atomic<int64_t> calls{0};
  /// Handles that are alive.
  std::atomic<int64_t> buffers{0}, executables{0}, instances{0};
  std::atomic<int64_t> executes{0}, compiles{0};
  /// Nanoseconds that each execute takes longer.
  std::atomic<int64_t> delay_ns{0};
  /// Ops of this opcode are rejected by compile when others stand before them in the program; 0: none.
  uint32_t reject = 0;
  /// Ops whose types are not all declared, or whose opcode is not in `only`, are declined.
  uint64_t types = ~uint64_t{0};  ///< bit per element type
  const uint32_t* only = nullptr;
  uint32_t only_count = 0;
  uint32_t remove_traits = 0;
  double link_latency_ns = 0, link_bytes_per_ns = 0;
  uint32_t smallest_cluster = 0;
  uint32_t group = 0;        ///< of all ops
  bool hide_memory = false;  ///< the host sees none of it
  double cost_ns = 0;        ///< of each op; 0: what the inner one says
  /// Donated arguments that are no results are overwritten when a launch has ended.
  bool scribble = false;
  std::atomic<int64_t> donated{0};  ///< arguments that were
  /// Launches on this device fail.
  std::atomic<uint32_t> broken_device{COLLET_NONE};
  /// The status of a launch that fails; COLLET_DATA_LOSS: it had begun.
  std::atomic<collet_status> failure{COLLET_INTERNAL};
  /// Nanoseconds that each copy takes longer.
  std::atomic<int64_t> copy_delay_ns{0};
  /// Bytes that may be allocated at a time; and those that are.
  std::atomic<int64_t> memory_limit{INT64_MAX}, memory{0};
  /// Programs for this device absorb their first constant, and then give nothing that means anything.
  uint32_t absorbs_on = COLLET_NONE;
  std::atomic<int64_t> wrongly_absent{0};  ///< constants that others were not given either
};

/// The replacement for missing options: null in the plain wrapper. And the name that it goes by; null: made from the inner
/// one's.
Control* default_control();
const char* default_name();

enum : uint32_t { kAlloc = 1, kCopy = 2, kCompile = 4, kExecute = 8, kSupports = 16 };

}  // namespace collet::testing
