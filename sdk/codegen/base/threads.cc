// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/threads.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <system_error>

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

namespace collet::codegen {
namespace {

constexpr int kSpins = 4000;
constexpr int64_t kSoonNs = 50000;  ///< ns for which a worker spins before it sleeps

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

#ifdef __linux__

/// Keeps the workers off the core on which the caller runs. A worker that has slept for some milliseconds is often woken
/// on the core of the thread that wakes it, and stays there until the scheduler balances its queues, which takes longer
/// than most loops.
class Threads::Cores {
 public:
  explicit Cores(std::vector<std::thread>& workers) : workers_(workers) {
    const bool known = sched_getaffinity(0, sizeof allowed_, &allowed_) == 0;
    active_ = known && CPU_COUNT(&allowed_) > 1;
    current_ = allowed_;
  }

  void leave_callers_core() {
    const int core = sched_getcpu();
    if (core == callers_core_ || !active_ || core < 0 || core >= CPU_SETSIZE) return;
    callers_core_ = core;
    cpu_set_t others = allowed_;
    CPU_CLR(static_cast<size_t>(core), &others);
    for (std::thread& worker : workers_) {
      cpu_set_t set;
      const pthread_t handle = worker.native_handle();
      // A mask that is not the one set here is the user's.
      active_ = pthread_getaffinity_np(handle, sizeof set, &set) == 0 && CPU_EQUAL(&set, &current_) &&
                pthread_setaffinity_np(handle, sizeof others, &others) == 0;
      if (!active_) return;
    }
    current_ = others;
  }

 private:
  std::vector<std::thread>& workers_;
  cpu_set_t allowed_;      ///< cores that the process could use when the workers were started
  cpu_set_t current_;      ///< cores that the workers may use
  int callers_core_ = -1;  ///< the core that `current_` leaves out
  bool active_ = false;
};

#else

class Threads::Cores {
 public:
  explicit Cores(std::vector<std::thread>&) {}
  void leave_callers_core() {}
};

#endif

namespace {

/// Address space that threads leave to what runs later, compilations above all, where the process may have only so much of it
/// (ulimit -v): LLVM ends a process that lacks memory.
class Reserve {
 public:
  Reserve() : space_(mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;
  ~Reserve() {
    if (there()) munmap(space_, kBytes);
  }
  bool there() const { return space_ != MAP_FAILED; }

 private:
  static constexpr size_t kBytes = size_t{256} << 20;
  void* space_;
};

}  // namespace

Threads::Threads(const Target& target)
    : awake_ns_(target.awake_ns),
      wake_ns_(target.wake_ns),
      spans_(std::make_unique<Span[]>(static_cast<size_t>(std::max(target.threads, 1)))) {
  workers_.reserve(static_cast<size_t>(std::max(target.threads, 1)));
  const Reserve reserve;
  std::atomic<size_t> started = 0;
  try {
    for (int i = 1; i < target.threads && reserve.there(); ++i) {
      workers_.emplace_back([this, i, &started] {
        // The first allocation of a thread takes address space of its own, while the reserve is there.
        void* volatile const first = std::malloc(1);
        std::free(first);
        started.fetch_add(1, std::memory_order_release);
        work(i);
      });
    }
  } catch (const std::system_error&) {
    // The system cannot start more threads; those that exist do the work.
  }
  while (started.load(std::memory_order_acquire) != workers_.size()) std::this_thread::yield();
  cores_ = std::make_unique<Cores>(workers_);
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

void Threads::take(int worker) {
  const int n = count();
  for (int k = 0; k < n; ++k) {
    Span& span = spans_[static_cast<size_t>((worker + k) % n)];
    for (;;) {
      if (span.next.load(std::memory_order_relaxed) >= span.end) break;
      const int64_t begin = span.next.fetch_add(job_.part, std::memory_order_relaxed);
      if (begin >= span.end) break;
      job_.body(job_.context, begin, std::min(begin + job_.part, span.end), worker);
    }
  }
}

bool Threads::comes_often(double ns) {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  const int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
  const int64_t last = last_missed_.exchange(now, std::memory_order_relaxed);
  const double missed = ns + (now - last < kSoonNs ? missed_ns_.load(std::memory_order_relaxed) : 0);
  // A second thread would have saved half of this work, which must be more than waking it takes.
  const bool often = missed > 2 * wake_ns_;
  missed_ns_.store(often ? 0 : missed, std::memory_order_relaxed);
  return often;
}

bool Threads::enter() {
  int gate = gate_.load(std::memory_order_acquire);
  while (gate & 1) {
    if (gate_.compare_exchange_weak(gate, gate + 2, std::memory_order_acq_rel)) return true;
  }
  return false;
}

void Threads::leave() {
  gate_.fetch_sub(2, std::memory_order_release);
}

void Threads::loop(int64_t range, int64_t grain, Body body, void* context) {
  if (workers_.empty() || range <= grain || !busy_.try_lock()) {
    body(context, 0, range, 0);
    return;
  }
  std::lock_guard lock(busy_, std::adopt_lock);
  // A few parts for each thread, so that a thread that starts late delays the others little.
  const int64_t units = (range + grain - 1) / grain;
  job_.part = std::max<int64_t>(units / (static_cast<int64_t>(count()) * 4), 1) * grain;
  job_.body = body;
  job_.context = context;
  job_.modes = FloatModes::present();
  for (int64_t w = 0; w < count(); ++w) {
    Span& span = spans_[static_cast<size_t>(w)];
    span.next.store(units * w / count() * grain, std::memory_order_relaxed);
    span.end = std::min(units * (w + 1) / count() * grain, range);
  }
  cores_->leave_callers_core();
  gate_.store(1, std::memory_order_release);
  generation_.fetch_add(1);
  if (sleeping_.load() > 0) {
    std::lock_guard sleep(sleep_);
    wake_.notify_all();
  }
  take(0);
  // Threads that have not joined by now no longer can. Those that have must end before the job is destroyed.
  gate_.fetch_sub(1, std::memory_order_acq_rel);
  while (gate_.load(std::memory_order_acquire) != 0) pause();
}

void Threads::work(int worker) {
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
    if (!enter()) continue;
    job_.modes.set();
    take(worker);
    leave();
  }
}

}  // namespace collet::codegen
