// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace collet::runtime {

/// One thread that runs tasks in the order in which they were added. It is started with the first task.
///
/// A task may wait for events of tasks that were added earlier, to any worker, but not of later ones. So workers that
/// wait for each other cannot deadlock.
class Worker {
 public:
  Worker() = default;
  ~Worker() { finish(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Throws, and adds nothing, if there is no memory or no thread.
  void add(std::function<void()> task);
  /// Finishes all tasks and ends the thread; nothing may be added afterwards. Must not be called on its own thread.
  void finish();
  /// True if nothing is queued or running.
  bool idle() const { return pending_.load(std::memory_order_acquire) == 0; }
  /// True if the calling thread belongs to a worker.
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

/// Threads for work that waits for other processes, each for one piece of work at a time; they are kept for the next one. Thread-safe.
class WorkerPool {
 public:
  /// Returns a worker without tasks.
  std::unique_ptr<Worker> take();
  /// Keeps a worker; its last task may still be about to end.
  void give_back(std::unique_ptr<Worker> worker);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> kept_;
};

}  // namespace collet::runtime
