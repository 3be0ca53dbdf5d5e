// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/cpu/threads.h"

#include <algorithm>
#include <chrono>

namespace collet::cpu {
namespace {

constexpr int kSpins = 4000;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Threads::Threads(int count) {
  for (int i = 1; i < count; ++i) workers_.emplace_back([this] { work(); });
}

Threads::~Threads() {
  {
    std::lock_guard lock(sleep_);
    stop_ = true;
    ++generation_;
  }
  wake_.notify_all();
  for (std::thread& t : workers_) t.join();
}

void Threads::take(Job& job) {
  for (;;) {
    int64_t begin = job.next.fetch_add(job.part, std::memory_order_relaxed);
    if (begin >= job.range) return;
    job.body(job.context, begin, std::min(begin + job.part, job.range));
  }
}

void Threads::loop(int64_t range, int64_t grain, Body body, void* context) {
  if (workers_.empty() || range <= grain || !busy_.try_lock()) {
    body(context, 0, range);
    return;
  }
  std::lock_guard lock(busy_, std::adopt_lock);
  // A few parts a thread, so that one that comes late costs little.
  int64_t parts = static_cast<int64_t>(count()) * 4;
  int64_t part = (range + parts - 1) / parts;
  part = std::max<int64_t>((part + grain - 1) / grain * grain, grain);
  job_.body = body;
  job_.context = context;
  job_.range = range;
  job_.part = part;
  job_.next.store(0, std::memory_order_relaxed);
  running_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1);
  if (sleeping_.load() > 0) {
    std::lock_guard sleep(sleep_);
    wake_.notify_all();
  }
  take(job_);
  while (running_.load(std::memory_order_acquire) != 0) pause();
}

void Threads::work() {
  uint64_t seen = 0;
  for (;;) {
    int spins = 0;
    while (generation_.load(std::memory_order_acquire) == seen) {
      if (++spins < kSpins) {
        pause();
        continue;
      }
      std::unique_lock lock(sleep_);
      sleeping_.fetch_add(1);
      wake_.wait(lock, [&] { return generation_.load() != seen; });
      sleeping_.fetch_sub(1);
    }
    seen = generation_.load();
    if (stop_) return;
    take(job_);
    running_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace collet::cpu
