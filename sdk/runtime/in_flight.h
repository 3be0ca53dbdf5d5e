// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace collet::runtime {

/// Bounds the runs of a device that were started and have not ended, so that a program which starts runs faster than the
/// device does them does not fill the memory with their results. Thread-safe.
class InFlight {
 public:
  explicit InFlight(uint32_t limit) : limit_(limit) {}

  /// Counts a run. Blocks first while there are as many as the limit, unless `at_once`: then the run is not bounded.
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
