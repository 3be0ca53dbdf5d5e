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
/// For tests: a backend with queues. It wraps a backend without queues, the inner backend, and runs its device asynchronously: each
/// queue is a thread that waits, takes some time, and then does its work on the inner backend. It checks that the SDK keeps the
/// rules of the interface. Options of open: "control", the address of a QueueControl in decimal, and "inner", the path of the inner
/// backend (default: the interpreter). The target "queued" has virtual devices.

namespace collet::testing {

/// Shared by a test and the backend that it opens.
struct QueueControl {
  /// Least time from putting a piece of work on its queue until it begins.
  std::atomic<int64_t> latency_ns{0};
  /// Time by which each piece of work is made longer.
  std::atomic<int64_t> duration_ns{0};
  /// If not 0, each piece of work is delayed by a random time of at most so many nanoseconds.
  std::atomic<int64_t> jitter_ns{0};
  /// While this is set, no queued work begins.
  std::atomic<bool> hold{false};
  /// The piece of work with this number, from 0 over all queues in the order of the calls, fails; -1: none does.
  std::atomic<int64_t> fail_at{-1};
  /// The execution whose first piece of work would have this number is refused once, with RESOURCE_EXHAUSTED; -1: none is.
  std::atomic<int64_t> refuse_at{-1};
  /// The device is lost from now on: all queues fail with UNAVAILABLE, and so does everything else.
  std::atomic<bool> lost{false};
  /// The backend does not offer the table "queue".
  bool without_queues = false;
  /// COLLET_TRAIT_* that the device has in addition to those of the inner backend.
  uint32_t traits = 0;
  /// COLLET_TRAIT_* of the inner backend that the device does not have.
  uint32_t without_traits = 0;
  /// The device's memory is visible to the host.
  bool host_visible = false;

  /// Patterns that the backend names in the table "patterns", ended by null; null: it does not offer the table.
  const char* const* patterns = nullptr;
  /// It offers the table "layout": f32 matrices that are arguments or results of add and subtract are column-major.
  bool column_major = false;
  /// The table "layout" has the optional function convert.
  bool converts = false;
  /// It offers the table "residency", and asks for a prepared form of argument 0 of each program.
  bool residency = false;

  /// It offers the table "profile", and records the work of its queues.
  bool profile = false;
  /// It offers the table "host_memory".
  bool host_memory = false;
  /// It offers the table "links", with its devices connected in a row.
  bool links = false;

  /// It offers the table "exchange", with devices that exchange data by collet_group::exchange.
  bool exchange = false;
  /// Exchanges do not end before `is_over` says so.
  bool stuck = false;

  // Counters of the calls that the backend got.
  std::atomic<int64_t> registered{0};    ///< pieces of host memory that are registered
  std::atomic<int64_t> exchanges{0};     ///< that the device has run
  std::atomic<int64_t> by_value{0};      ///< arguments that were passed by value
  std::atomic<int64_t> passed{0};        ///< arguments of all launches
  std::atomic<int64_t> placed{0};        ///< arguments and results that were not dense and row-major
  std::atomic<int64_t> conversions{0};   ///< calls of convert of the table "layout"
  std::atomic<int64_t> prepared{0};      ///< prepared forms of arguments that were made
  std::atomic<int64_t> as_prepared{0};   ///< arguments that were passed in a prepared form
  std::atomic<int64_t> pieces{0};        ///< pieces of work that were put on queues
  std::atomic<int64_t> blocking{0};      ///< copies and executions without a sync
  std::atomic<int64_t> busy_ns[3] = {};  ///< time that work on queues took, by kind of queue
  std::atomic<int64_t> pending{0}, most_pending{0};
  std::atomic<int64_t> buffers{0}, executables{0}, queues{0}, instances{0};
  std::atomic<int64_t> bytes{0}, most_bytes{0};
  std::mutex mutex;
  std::vector<std::string> violations;  ///< under mutex: rules of the interface that the SDK broke

  /// Waits until no instance is open, for five seconds at most.
  void wait_until_closed() const {
    for (int i = 0; i < 5000 && instances; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::vector<std::string> broken_rules() {
    const std::lock_guard lock(mutex);
    return violations;
  }
};

}  // namespace collet::testing
