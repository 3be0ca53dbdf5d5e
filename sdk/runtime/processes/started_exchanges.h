// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "hlo/base/status.h"
#include "sdk/runtime/memory/memory.h"
#include "sdk/runtime/memory/worker.h"

/// \file
/// Collectives over several processes that run beside the launches of their run.

namespace collet::runtime {

/// The exchanges that one run has started: they run one after another on a thread of their own, in the order of their starts, and
/// none after one that fails. Used by the thread of the run.
class StartedExchanges {
 public:
  /// `workers` outlives this object.
  explicit StartedExchanges(WorkerPool& workers) : workers_(workers) {}
  /// Waits for the exchange that is running, and drops those that have not begun.
  ~StartedExchanges();
  StartedExchanges(const StartedExchanges&) = delete;
  StartedExchanges& operator=(const StartedExchanges&) = delete;

  /// True if there is none whose end is not known.
  bool empty() const { return entries_.empty(); }
  /// Starts an exchange, which reads and writes this memory until it ends.
  void start(std::vector<MemoryRef> reads, std::vector<MemoryRef> writes, std::function<Status()> exchange);
  /// Waits until the memory may be read: no exchange that has been started writes it. Returns the failure of an exchange.
  Status before_read(const Memory* memory);
  /// Waits until the memory may be written: no exchange that has been started reads or writes it.
  Status before_write(const Memory* memory);
  /// Waits for all exchanges.
  Status finish();
  /// Drops those that have not begun, and waits for the one that is running.
  void drop();
  /// Returns the failure of an exchange, if one has failed.
  Status failure();

 private:
  struct Entry {
    std::vector<MemoryRef> reads, writes;
  };
  // Waits until the first `count` of entries_ have ended, and forgets them.
  Status wait(size_t count);

  WorkerPool& workers_;
  std::unique_ptr<Worker> worker_;  // null before the first start
  std::deque<Entry> entries_;
  uint64_t first_ = 0;  // number of entries_.front()
  std::atomic<bool> failed_{false};
  std::mutex mutex_;  // guards the following members
  std::condition_variable ended_;
  uint64_t done_ = 0;  // how many exchanges have ended
  bool drops_ = false;
  Status failure_;
};

}  // namespace collet::runtime
