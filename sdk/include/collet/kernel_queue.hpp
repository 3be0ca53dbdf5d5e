/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_QUEUE_HPP
#define COLLET_KERNEL_QUEUE_HPP

/** \file
 * Queues of a backend that is a table of kernels ("queue" of tables.h). Each queue has a thread that waits for the
 * points of the next piece of work and starts it. If the device works asynchronously (Device::mark), a second thread
 * waits for the end of started work, so that the device always has the next program. Included by kernel_backend.hpp.
 */

#include <deque>
#include <random>
#include <thread>

#include "kernel_instance.hpp"

namespace collet {
namespace kernel {
namespace detail {

/** The state of a queue. It outlives the queue while other queues wait for it. Guarded by the instance's queue_mutex. */
struct Progress {
  uint64_t counter = 0;
  collet_status status = COLLET_OK;
  std::string message;
  bool busy = false;  // true while work that was put on the queue may still use memory

  bool has_failed() const { return status != COLLET_OK && !busy; }
};

/** A function that starts work, and returns the marks of the device that must be reached before the work has ended.
 * `serial_lock` is held while devices are called, if only one call at a time is allowed. */
using Begin =
    std::function<std::vector<uint64_t>(const std::atomic<bool>& stop, std::unique_lock<std::mutex>* serial_lock)>;

/** Delays the calling thread by a random time, up to Backend::queue_jitter_ns. */
class Jitter {
 public:
  Jitter(uint64_t most_ns, uint32_t seed) : most_ns_(most_ns), random_(seed) {}
  void delay() {
    if (most_ns_ == 0) return;
    std::uniform_int_distribution<uint64_t> time(0, most_ns_);
    std::this_thread::sleep_for(std::chrono::nanoseconds(static_cast<int64_t>(time(random_))));
  }

 private:
  uint64_t most_ns_;
  std::minstd_rand random_;
};

/** A queue. */
class Queue {
 public:
  Queue(Instance* instance, uint32_t number, uint32_t kind)
      : instance_(instance),
        number_(number),
        kind_(kind),
        begin_jitter_(instance->backend.queue_jitter_ns, 2 * (3 * number + kind) + 1),
        end_jitter_(instance->backend.queue_jitter_ns, 2 * (3 * number + kind) + 2),
        progress_(std::make_shared<Progress>()) {
    issuer_ = std::thread([this] { issue(); });
    const std::lock_guard<std::mutex> lock(instance->queue_mutex);
    instance->queues.push_back(this);
  }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue() {
    {
      const std::lock_guard<std::mutex> lock(instance_->queue_mutex);
      ended_ = true;
      stop_ = true;
      std::vector<Queue*>& all = instance_->queues;
      all.erase(std::find(all.begin(), all.end(), this));
      instance_->notify_queues();
    }
    issuer_.join();
    if (completer_.joinable()) completer_.join();
  }

  Instance* instance() const { return instance_; }
  uint32_t device() const { return number_; }
  uint32_t kind() const { return kind_; }

  /** Throws an error for a sync with invalid points. */
  void check(const collet_sync& sync) const {
    if (sync.signal_count != 1 || from(sync.signals[0].queue) != this) {
      throw Error(COLLET_INVALID_ARGUMENT, "a sync signals one point of its own queue");
    }
    for (uint32_t i = 0; i < sync.wait_count; ++i) {
      const Queue* other = from(sync.waits[i].queue);
      if (!other || other->instance_ != instance_) {
        throw Error(COLLET_INVALID_ARGUMENT, "a wait for a queue of another instance");
      }
    }
    const auto lock = instance_->lock_queues();
    if (sync.signals[0].value <= last_) throw Error(COLLET_INVALID_ARGUMENT, "a point that was signalled before");
  }

  /** Puts work at the end of the queue. `sync` has been checked. */
  void put(const collet_sync& sync, Begin begin) {
    Work work;
    work.value = sync.signals[0].value;
    work.begin = std::move(begin);
    for (uint32_t i = 0; i < sync.wait_count; ++i) {
      const Queue* other = from(sync.waits[i].queue);
      if (other != this) work.waits.emplace_back(other->progress_, sync.waits[i].value);
    }
    const auto lock = instance_->lock_queues();
    if (progress_->status == COLLET_OK) work_.push_back(std::move(work));  // otherwise it fails with the queue
    last_ = sync.signals[0].value;
    instance_->notify_queues();
  }

  /** Blocks until the counter reaches `value`. */
  void wait(uint64_t value, uint64_t timeout_ns) const {
    auto lock = instance_->lock_queues();
    const auto over = [&] { return progress_->counter >= value || progress_->has_failed(); };
    if (timeout_ns == UINT64_MAX) {
      instance_->await_queues(lock, over);
    } else {
      constexpr uint64_t kLongest = UINT64_C(1) << 60;
      const auto end = std::chrono::steady_clock::now() +
                       std::chrono::nanoseconds(static_cast<int64_t>(std::min(timeout_ns, kLongest)));
      if (!instance_->queue_changed.wait_until(lock, end, over)) {
        throw Error(COLLET_DEADLINE_EXCEEDED, "the point is not reached yet");
      }
    }
    if (progress_->counter < value) throw Error(progress_->status, progress_->message);
  }

  void abort(collet_status status, const char* message) {
    const std::lock_guard<std::mutex> lock(instance_->queue_mutex);
    fail(status, message);
    instance_->notify_queues();
  }

  static Queue* from(collet_backend_queue* queue) { return reinterpret_cast<Queue*>(queue); }

 private:
  struct Work {
    uint64_t value = 0;
    std::vector<std::pair<std::shared_ptr<const Progress>, uint64_t>> waits;
    Begin begin;
  };
  struct Started {
    uint64_t value;
    std::vector<uint64_t> marks;
  };

  /** Fails the queue. The caller holds the mutex. */
  void fail(collet_status status, const char* message) {
    if (progress_->status != COLLET_OK) return;
    progress_->status = status == COLLET_OK ? COLLET_INTERNAL : status;
    progress_->message = message;
    stop_ = true;
    work_.clear();
    look_busy();
  }
  /** Fails the queue because its work failed. If the device is lost, its other queues fail, too. */
  void fail_by_work(const collet_error& error) {
    fail(error.code, error.message);
    if (error.code != COLLET_UNAVAILABLE) return;
    for (Queue* other : instance_->queues) {
      if (other->number_ == number_) other->fail(error.code, error.message);
    }
  }
  void look_busy() { progress_->busy = issuing_ || !started_.empty(); }

  /** The issuing thread: starts pieces of work, one after another. */
  void issue() {
    Instance& instance = *instance_;
    std::unique_lock<std::mutex> lock(instance.queue_mutex);
    for (;;) {
      instance.await_queues(lock, [&] { return ended_ || !work_.empty(); });
      if (work_.empty()) return;
      const Work piece = std::move(work_.front());
      work_.pop_front();
      issuing_ = true;
      look_busy();
      std::shared_ptr<const Progress> broken;
      instance.await_queues(lock, [&] {
        broken = nullptr;
        if (progress_->status != COLLET_OK) return true;
        return std::all_of(piece.waits.begin(), piece.waits.end(), [&](const auto& wait) {
          if (wait.first->counter >= wait.second) return true;
          if (wait.first->has_failed()) broken = wait.first;
          return broken != nullptr;
        });
      });
      if (broken) fail(broken->status, broken->message.c_str());
      if (progress_->status == COLLET_OK) begin(lock, piece);
      issuing_ = false;
      look_busy();
      instance.notify_queues();
    }
  }

  void begin(std::unique_lock<std::mutex>& lock, const Work& piece) {
    lock.unlock();
    begin_jitter_.delay();
    collet_error error{};
    std::vector<uint64_t> marks;
    {
      auto serial_lock = instance_->lock_serial();
      const collet_status code = guarded(&error, [&] { marks = piece.begin(stop_, &serial_lock); });
      if (code != COLLET_OK) settle(instance_->devices[number_].get());
    }
    if (marks.empty()) begin_jitter_.delay();
    instance_->lock_again(lock);
    if (error.code != COLLET_OK) return fail_by_work(error);
    if (marks.empty() && started_.empty()) {
      if (progress_->status == COLLET_OK) progress_->counter = piece.value;
      return;
    }
    started_.push_back({piece.value, std::move(marks)});
    if (!completer_.joinable()) completer_ = std::thread([this] { complete(); });
  }

  /** The completing thread: waits for the end of started work. */
  void complete() {
    std::unique_lock<std::mutex> lock(instance_->queue_mutex);
    for (;;) {
      instance_->await_queues(lock, [&] { return (ended_ && !issuing_) || !started_.empty(); });
      if (started_.empty()) return;
      const Started one = started_.front();
      lock.unlock();
      collet_error error{};
      for (const uint64_t mark : one.marks) {  // waits for all marks, even if one fails
        const auto serial_lock = instance_->lock_serial();
        collet_error its{};
        guarded(&its, [&] { instance_->devices[number_]->wait(mark); });
        if (error.code == COLLET_OK) error = its;
      }
      end_jitter_.delay();
      instance_->lock_again(lock);
      if (error.code != COLLET_OK) fail_by_work(error);
      if (progress_->status == COLLET_OK) progress_->counter = one.value;
      started_.pop_front();
      look_busy();
      instance_->notify_queues();
    }
  }

  Instance* instance_;
  uint32_t number_, kind_;
  Jitter begin_jitter_, end_jitter_;  // for the issuing and the completing thread
  uint64_t last_ = 0;                 // value of the point that was last put on the queue
  std::shared_ptr<Progress> progress_;
  std::deque<Work> work_;
  std::deque<Started> started_;
  bool issuing_ = false, ended_ = false;
  std::atomic<bool> stop_{false};  // set when the queue has failed, so that running work may end early
  std::thread issuer_, completer_;
};

/** Makes copies on a queue. */
inline std::vector<uint64_t> begin_copies(Instance* instance, uint32_t number, bool compute,
                                          const std::vector<collet_copy_region>& regions,
                                          const std::atomic<bool>& stop) {
  Device* device = instance->devices[number].get();
  std::vector<uint64_t> marks;
  try {
    for (const collet_copy_region& region : regions) {
      if (stop) break;
      copy_region(region, compute ? device : nullptr, false, device, &marks);
    }
    bool ordered = false;  // true if a copy was queued on this device and may not have ended
    for (const collet_copy_region& region : regions) {
      const Buffer *from = unwrap(region.from.buffer), *to = unwrap(region.to.buffer);
      if (!to) continue;
      const bool within = from && from->device == to->device;
      if (to->device == device) {
        ordered |= within || compute;
      } else if (within) {
        complete(to->device);
      }
    }
    if (!ordered) return marks;
    const uint64_t mark = device->mark();
    if (mark == 0) return marks;
    if (compute) {
      marks.push_back(mark);
    } else {
      device->wait(mark);
    }
  } catch (...) {
    for (const uint64_t mark : marks) {
      collet_error ignored{};
      guarded(&ignored, [&] { device->wait(mark); });
    }
    throw;
  }
  return marks;
}

}  // namespace detail
}  // namespace kernel
}  // namespace collet

#endif
