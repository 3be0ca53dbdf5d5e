// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/backend.h>

#include <atomic>
#include <cstdint>

/// \file
/// For tests: a backend that forwards calls to another one and can change them. Options of open: "inner" is the path of
/// the other backend, "control" the address of a Control in decimal.

namespace collet::testing {

/// Shared by a test and the wrapper that it opens.
struct Control {
  /// Calls to count: bits of kAlloc, kCopy, kCompile, kExecute, kSupports.
  uint32_t counted = 0;
  /// The counted call with this number, from 0, fails; -1: none does.
  std::atomic<int64_t> fail_at{-1};
  bool for_good = false;  ///< all later ones fail, too
  bool loses = false;     ///< calls that fail say that the device is lost: COLLET_UNAVAILABLE
  std::atomic<int64_t> calls{0};
  /// Numbers of handles that exist.
  std::atomic<int64_t> buffers{0}, executables{0}, instances{0};
  std::atomic<int64_t> executes{0}, compiles{0};
  /// Nanoseconds by which each execute is made longer.
  std::atomic<int64_t> delay_ns{0};
  /// Ops with this opcode are rejected by compile if other ops precede them in the program; 0: none.
  uint32_t reject = 0;
  /// Ops are declined if one of their types is not declared in `types`, or if their opcode is not in `only`.
  uint64_t types = ~uint64_t{0};  ///< one bit per element type
  const uint32_t* only = nullptr;
  uint32_t only_count = 0;
  uint32_t remove_traits = 0;
  double link_latency_ns = 0, link_bytes_per_ns = 0;
  uint32_t smallest_cluster = 0;
  uint32_t group = 0;        ///< fusion group of all ops
  bool hide_memory = false;  ///< the host cannot access device memory
  double cost_ns = 0;        ///< cost of each op; 0: that of the inner backend
  /// Donated arguments that are not aliased with results are overwritten when a launch has ended.
  bool scribble = false;
  std::atomic<int64_t> donated{0};  ///< number of donated arguments
  /// The device on which launches fail.
  std::atomic<uint32_t> broken_device{COLLET_NONE};
  /// The status of a failing launch; with COLLET_DATA_LOSS it fails after it has started.
  std::atomic<collet_status> failure{COLLET_INTERNAL};
  /// Nanoseconds by which each copy is made longer.
  std::atomic<int64_t> copy_delay_ns{0};
  /// Most bytes that may be allocated at a time, and bytes that are allocated.
  std::atomic<int64_t> memory_limit{INT64_MAX}, memory{0};
  /// Programs for this device absorb their first constant, and then have undefined results.
  uint32_t absorbs_on = COLLET_NONE;
  /// Number of constants that were also missing for programs that had not absorbed them.
  std::atomic<int64_t> wrongly_absent{0};
};

/// Returns the Control that is used if no option states one: null in the plain wrapper. default_name returns the name
/// of the backend; null: it is derived from the inner backend's name.
Control* default_control();
const char* default_name();

enum : uint32_t { kAlloc = 1, kCopy = 2, kCompile = 4, kExecute = 8, kSupports = 16 };

}  // namespace collet::testing
