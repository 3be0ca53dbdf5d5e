// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace collet::runtime {

/// Limits the number of runs of a device that were started and have not ended. Otherwise a program that starts runs
/// faster than the device executes them would fill the memory with results. Thread-safe.
class InFlight {
 public:
  explicit InFlight(uint32_t limit) : limit_(limit) {}

  /// Counts a run. Blocks first while the limit is reached, unless `at_once` is set: then the run is not limited.
  void begin(bool at_once) {
    std::unique_lock lock(mutex_);
    if (!at_once) fewer_.wait(lock, [&] { return runs_ < limit_; });
    ++runs_;
  }
  void end() {
    {
      const std::lock_guard lock(mutex_);
      --runs_;
    }
    fewer_.notify_one();
  }

 private:
  const uint32_t limit_;
  std::mutex mutex_;
  std::condition_variable fewer_;
  uint32_t runs_ = 0;
};

}  // namespace collet::runtime
