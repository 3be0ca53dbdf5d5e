// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/target.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace collet::codegen {

/// A few threads that share the work of one loop. A worker spins for a while after each loop and then sleeps; small
/// loops never come here.
class Threads {
 public:
  /// target.threads with the caller of loop(); fewer where the system has not so many to give.
  explicit Threads(const Target& target);
  ~Threads();
  Threads(const Threads&) = delete;

  /// Whether sharing so much work costs less than it saves, as things are. Sleeping workers are woken for work that is not worth
  /// that by itself where such work comes so often that they will not sleep again before the next of it.
  bool worthwhile(double ns) {
    if (ns > wake_ns_) return true;
    if (ns <= awake_ns_) return false;
    return sleeping_.load(std::memory_order_relaxed) == 0 || comes_often(ns);
  }

  int count() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(context, begin, end, worker) for parts of [0, range), each a multiple of `grain` but the last. Returns
  /// when all are done. Each worker has a span of its own, the same in each loop of that range, so that it finds in its
  /// cache what it has left there; who is done with its own helps the others. `worker`, below count(), is never used twice at once. When the threads are busy with another loop
  /// the caller does it all.
  using Body = void (*)(void* context, int64_t begin, int64_t end, int worker);
  void loop(int64_t range, int64_t grain, Body body, void* context);

 private:
  struct Job {
    Body body = nullptr;
    void* context = nullptr;
    int64_t part = 0;
  };
  /// The iterations that are left of one worker's part of the loop.
  struct alignas(64) Span {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  void work(int worker);
  void take(int worker);
  bool comes_often(double ns);
  bool enter();
  void leave();

  const double awake_ns_;  ///< of work that pays while the workers wait for it
  const double wake_ns_;   ///< and while they sleep
  std::vector<std::thread> workers_;
  std::unique_ptr<Span[]> spans_;
  std::mutex busy_;  ///< held by the thread whose loop runs
  std::mutex sleep_;
  std::condition_variable wake_;
  Job job_;
  std::atomic<uint64_t> generation_{0};
  std::atomic<int> sleeping_{0};
  std::atomic<int64_t> last_missed_{0};  ///< when work was last not shared because the workers slept
  std::atomic<double> missed_ns_{0};     ///< how much of it came in short succession
  /// Twice the number of workers in the loop, and 1 while it is open to more.
  std::atomic<int> gate_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace collet::codegen
