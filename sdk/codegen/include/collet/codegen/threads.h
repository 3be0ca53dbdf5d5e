// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/target.h>
#include <collet/float_modes.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace collet::codegen {

/// Threads that share the iterations of one loop. A worker spins for a while after each loop and then sleeps. Loops too
/// short to be shared are not passed to this class. On Linux, workers run on any core that the process may use except the
/// one on which the last loop was started; a program that sets the affinity of a worker itself turns that off.
class Threads {
 public:
  /// Starts target.threads - 1 workers, which share loops with the caller of loop(); fewer if the system has fewer to
  /// give.
  explicit Threads(const Target& target);
  ~Threads();
  Threads(const Threads&) = delete;

  /// True if sharing work of `ns` nanoseconds among threads costs less than it saves. If the workers sleep, they are
  /// woken for short work only if such work comes in quick succession, so that they will stay awake for the next of it.
  bool worthwhile(double ns) {
    if (ns > wake_ns_) return true;
    if (ns <= awake_ns_) return false;
    return sleeping_.load(std::memory_order_relaxed) == 0 || comes_often(ns);
  }

  int count() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(context, begin, end, worker) for parts of [0, range), each a multiple of `grain` but the last. Returns
  /// when all parts are done. In each loop of the same range a worker gets the same span, so that its data may still be
  /// in its cache; a worker that has finished its span helps the others. `worker`, below count(), is never used twice
  /// at once. While another loop runs, the caller does all iterations itself. Workers have the caller's modes of floating-point
  /// arithmetic.
  using Body = void (*)(void* context, int64_t begin, int64_t end, int worker);
  void loop(int64_t range, int64_t grain, Body body, void* context);

 private:
  struct Job {
    Body body = nullptr;
    void* context = nullptr;
    int64_t part = 0;
    FloatModes modes = FloatModes::usual();
  };
  /// The remaining iterations of one worker's span of the loop.
  struct alignas(64) Span {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  class Cores;
  void work(int worker);
  void take(int worker);
  bool comes_often(double ns);
  bool enter();
  void leave();

  const double awake_ns_;  ///< least work in ns that is shared while the workers spin
  const double wake_ns_;   ///< least work in ns that is shared while the workers sleep
  std::vector<std::thread> workers_;
  std::unique_ptr<Cores> cores_;
  std::unique_ptr<Span[]> spans_;
  std::mutex busy_;  ///< held by the thread whose loop is running
  std::mutex sleep_;
  std::condition_variable wake_;
  Job job_;
  std::atomic<uint64_t> generation_{0};
  std::atomic<int> sleeping_{0};
  std::atomic<int64_t> last_missed_{0};  ///< time at which work was last not shared because the workers slept
  std::atomic<double> missed_ns_{0};     ///< sum of such work in quick succession, in ns
  /// Twice the number of workers in the loop, plus 1 while further workers may enter.
  std::atomic<int> gate_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace collet::codegen
