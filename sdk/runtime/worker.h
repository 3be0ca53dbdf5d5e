// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace collet::runtime {

/// One thread that does tasks in the order in which they came. It starts with the first one.
///
/// A task may wait for events of tasks that were given, to whichever worker, before it: never for later ones. So workers
/// that wait for each other always come free.
class Worker {
 public:
  Worker() = default;
  ~Worker() { finish(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void add(std::function<void()> task);
  /// Finishes what was given, and ends the thread: nothing may be added afterwards. Not from its own thread.
  void finish();
  /// Whether nothing is queued or running.
  bool idle() const { return pending_.load(std::memory_order_acquire) == 0; }
  /// The calling thread is one of some worker.
  static bool is_current_thread();

 private:
  void run();

  std::atomic<uint32_t> pending_{0};
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::function<void()>> tasks_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace collet::runtime
