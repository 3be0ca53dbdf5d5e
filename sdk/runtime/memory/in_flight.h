// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace collet::runtime {

/// Limits the number of runs of a device that were started and have not ended. Otherwise a program that starts runs
/// faster than the device executes them would fill the memory with results, or with waiting runs. Thread-safe.
class InFlight {
 public:
  explicit InFlight(uint32_t limit) : limit_(limit) {}

  /// Counts a run. If the limit has been reached, blocks first until half of the runs have ended. A caller that
  /// wakes whenever one run ends would take a core from the device's threads each time. `at_once`: the run is not
  /// limited.
  void begin(bool at_once) {
    std::unique_lock lock(mutex_);
    if (!at_once) fewer_.wait(lock, [&] { return open_; });
    if (++runs_ >= limit_) open_ = false;
  }
  void end() {
    {
      const std::lock_guard lock(mutex_);
      if (--runs_ > limit_ / 2 || open_) return;
      open_ = true;
    }
    fewer_.notify_all();
  }

 private:
  const uint32_t limit_;
  std::mutex mutex_;
  std::condition_variable fewer_;
  uint32_t runs_ = 0;
  bool open_ = true;  ///< false from when the limit is reached until half of the runs have ended
};

}  // namespace collet::runtime
