// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

/// \file
/// For tests: a backend with queues. It stands before a backend without them, whose device it runs asynchronously: each
/// queue is a thread that waits, takes some time, and then does its work on the backend behind. It checks what the SDK does
/// with it. Options of open: "control", the address of a QueueControl in decimal, and "inner", the path of the backend
/// behind it (the interpreter unless told).

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
  /// Memory that the host sees.
  bool host_visible = false;

  // What it saw.
  std::atomic<int64_t> pieces{0};        ///< of work, put on queues
  std::atomic<int64_t> blocking{0};      ///< copies and executions without a sync
  std::atomic<int64_t> busy_ns[3] = {};  ///< time from begin to end of the work on queues, by kind
  std::atomic<int64_t> pending{0}, most_pending{0};
  std::atomic<int64_t> buffers{0}, executables{0}, queues{0}, instances{0};
  std::atomic<int64_t> bytes{0}, most_bytes{0};
  std::mutex mutex;
  std::vector<std::string> violations;  ///< under mutex: rules of the interface that the SDK broke

  std::vector<std::string> broken_rules() {
    const std::lock_guard lock(mutex);
    return violations;
  }
};

}  // namespace collet::testing
