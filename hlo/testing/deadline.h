// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace collet::hlo::testing {

/// Sets a flag after some time, unless it is destroyed before. For EvalOptions::cancel.
class Deadline {
 public:
  explicit Deadline(double seconds)
      : thread_([this, seconds] {
          std::unique_lock lock(mutex_);
          expired_ = !ended_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return done_; });
        }) {}
  ~Deadline() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    ended_.notify_all();
    thread_.join();
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  const std::atomic<bool>* flag() const { return &expired_; }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;
  std::atomic<bool> expired_ = false;
  std::thread thread_;
};

}  // namespace collet::hlo::testing
