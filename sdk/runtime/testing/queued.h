// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

/// \file
/// For tests: a backend with queues. It stands before a backend without them, whose device it runs asynchronously: each
/// queue is a thread that waits, takes some time, and then does its work on the backend behind. It checks what the SDK does
/// with it. Options of open: "control", the address of a QueueControl in decimal, and "inner", the path of the backend
/// behind it (the interpreter unless told). The target "queued" has virtual devices.

namespace collet::testing {

/// Shared by a test and the backend that it opens.
struct QueueControl {
  /// Each piece of work begins so long after it was put on its queue, at least.
  std::atomic<int64_t> latency_ns{0};
  /// Each piece of work takes so much longer.
  std::atomic<int64_t> duration_ns{0};
  /// Not 0: each piece of work is delayed by a random time, up to so many nanoseconds.
  std::atomic<int64_t> jitter_ns{0};
  /// No work begins while this is set.
  std::atomic<bool> hold{false};
  /// The piece of work with this number, from 0 over all queues in the order of the calls, fails; -1: none does.
  std::atomic<int64_t> fail_at{-1};
  /// The device is lost from now on: all queues fail with UNAVAILABLE, and so does everything else.
  std::atomic<bool> lost{false};
  /// The table "queue" is not there.
  bool without_queues = false;
  /// COLLET_TRAIT_* that the device has besides.
  uint32_t traits = 0;
  /// COLLET_TRAIT_* of the backend behind that it does not have.
  uint32_t without_traits = 0;
  /// Memory that the host sees.
  bool host_visible = false;

  /// Names of patterns that it wants to be asked for, zero-ended; null: the table "patterns" is not there.
  const char* const* patterns = nullptr;
  /// Matrices of f32 that come to or from a program of add or subtract lie column by column; the table "layout" is there.
  bool column_major = false;
  /// It does what the table "layout" may do: convert.
  bool converts = false;
  /// Argument 0 of each program wants to be prepared; the table "residency" is there.
  bool residency = false;

  /// The table "profile" is there: it records the work of its queues.
  bool profile = false;
  /// The table "host_memory" is there.
  bool host_memory = false;
  /// The table "links" is there: its devices stand in a row. It can join a group.
  bool links = false;

  // What it saw.
  std::atomic<int64_t> registered{0};    ///< pieces of host memory that are
  std::vector<uint32_t> group;           ///< ranks of the group that it joined, as they came
  std::atomic<int64_t> by_value{0};      ///< arguments
  std::atomic<int64_t> passed{0};        ///< arguments of launches, in all
  std::atomic<int64_t> placed{0};        ///< arguments and results in a layout of their own
  std::atomic<int64_t> conversions{0};   ///< by the table
  std::atomic<int64_t> prepared{0};      ///< forms of arguments that were made
  std::atomic<int64_t> as_prepared{0};   ///< arguments that came in such a form
  std::atomic<int64_t> pieces{0};        ///< of work, put on queues
  std::atomic<int64_t> blocking{0};      ///< copies and executions without a sync
  std::atomic<int64_t> busy_ns[3] = {};  ///< time from begin to end of the work on queues, by kind
  std::atomic<int64_t> pending{0}, most_pending{0};
  std::atomic<int64_t> buffers{0}, executables{0}, queues{0}, instances{0};
  std::atomic<int64_t> bytes{0}, most_bytes{0};
  std::mutex mutex;
  std::vector<std::string> violations;  ///< under mutex: rules of the interface that the SDK broke

  /// Until no instance is open, five seconds at most.
  void wait_until_closed() const {
    for (int i = 0; i < 5000 && instances; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::vector<std::string> broken_rules() {
    const std::lock_guard lock(mutex);
    return violations;
  }
};

}  // namespace collet::testing
