/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_QUEUE_HPP
#define COLLET_KERNEL_QUEUE_HPP

/** \file
 * Queues of a backend that is a table of kernels ("queue" of tables.h). Each is a thread that waits for what its work waits
 * for and starts it; where a device runs ahead (Device::mark), a second thread waits for the end of what was started, so
 * that the device always has the next program. Included by kernel_backend.hpp.
 */

#include <thread>

#include "kernel_instance.hpp"

namespace collet {
namespace kernel {
namespace detail {

/** How far a queue is. Outlives the queue as long as other queues wait for it. Under the instance's queue_mutex. */
struct Progress {
  uint64_t counter = 0;
  collet_status status = COLLET_OK;
  std::string message;
  bool busy = false;  // something that was put there may still use memory

  bool has_failed() const { return status != COLLET_OK && !busy; }
};

/** Work that starts and says when it has ended: a mark of the device, or 0 where it has. */
using Begin = std::function<uint64_t(const std::atomic<bool>& stop)>;

/** A queue. */
class Queue {
 public:
  Queue(Instance* instance, uint32_t number, uint32_t kind)
      : instance_(instance), number_(number), kind_(kind), progress_(std::make_shared<Progress>()) {
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
      instance_->queue_changed.notify_all();
    }
    issuer_.join();
    if (completer_.joinable()) completer_.join();
  }

  Instance* instance() const { return instance_; }
  uint32_t device() const { return number_; }
  uint32_t kind() const { return kind_; }

  /** Refuses a sync whose points cannot be. */
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
    const std::lock_guard<std::mutex> lock(instance_->queue_mutex);
    if (sync.signals[0].value <= last_) throw Error(COLLET_INVALID_ARGUMENT, "a point that was signalled before");
  }

  /** Puts work behind what is there. `sync` was checked. */
  void put(const collet_sync& sync, Begin begin) {
    Work work;
    work.value = sync.signals[0].value;
    work.begin = std::move(begin);
    for (uint32_t i = 0; i < sync.wait_count; ++i) {
      const Queue* other = from(sync.waits[i].queue);
      if (other != this) work.waits.emplace_back(other->progress_, sync.waits[i].value);
    }
    const std::lock_guard<std::mutex> lock(instance_->queue_mutex);
    if (progress_->status == COLLET_OK) work_.push_back(std::move(work));  // else it fails with the queue
    last_ = sync.signals[0].value;
    instance_->queue_changed.notify_all();
  }

  /** Blocks until `value` is reached. */
  void wait(uint64_t value, uint64_t timeout_ns) const {
    std::unique_lock<std::mutex> lock(instance_->queue_mutex);
    const auto over = [&] { return progress_->counter >= value || progress_->has_failed(); };
    if (timeout_ns == UINT64_MAX) {
      instance_->queue_changed.wait(lock, over);
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
    instance_->queue_changed.notify_all();
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
    uint64_t mark;
  };

  /** Under the mutex. */
  void fail(collet_status status, const char* message) {
    if (progress_->status != COLLET_OK) return;
    progress_->status = status == COLLET_OK ? COLLET_INTERNAL : status;
    progress_->message = message;
    stop_ = true;
    work_.clear();
    look_busy();
  }
  /** Its own work failed. A device that is lost takes its other queues with it. */
  void fail_by_work(const collet_error& error) {
    fail(error.code, error.message);
    if (error.code != COLLET_UNAVAILABLE) return;
    for (Queue* other : instance_->queues) {
      if (other->number_ == number_) other->fail(error.code, error.message);
    }
  }
  void look_busy() { progress_->busy = issuing_ || !started_.empty(); }

  /** Starts pieces of work, one after another. */
  void issue() {
    Instance& instance = *instance_;
    std::unique_lock<std::mutex> lock(instance.queue_mutex);
    for (;;) {
      instance.queue_changed.wait(lock, [&] { return ended_ || !work_.empty(); });
      if (work_.empty()) return;
      const Work piece = std::move(work_.front());
      work_.pop_front();
      issuing_ = true;
      look_busy();
      std::shared_ptr<const Progress> broken;
      instance.queue_changed.wait(lock, [&] {
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
      instance.queue_changed.notify_all();
    }
  }

  void begin(std::unique_lock<std::mutex>& lock, const Work& piece) {
    lock.unlock();
    collet_error error{};
    uint64_t mark = 0;
    {
      const auto turn = instance_->turn();
      const collet_status code = guarded(&error, [&] { mark = piece.begin(stop_); });
      if (code != COLLET_OK) settle(instance_->devices[number_].get());
    }
    lock.lock();
    if (error.code != COLLET_OK) return fail_by_work(error);
    if (mark == 0 && started_.empty()) {
      if (progress_->status == COLLET_OK) progress_->counter = piece.value;
      return;
    }
    started_.push_back({piece.value, mark});
    if (!completer_.joinable()) completer_ = std::thread([this] { complete(); });
  }

  /** Waits for the end of what was started. */
  void complete() {
    std::unique_lock<std::mutex> lock(instance_->queue_mutex);
    for (;;) {
      instance_->queue_changed.wait(lock, [&] { return (ended_ && !issuing_) || !started_.empty(); });
      if (started_.empty()) return;
      const Started one = started_.front();
      lock.unlock();
      collet_error error{};
      if (one.mark != 0) {
        const auto turn = instance_->turn();
        guarded(&error, [&] { instance_->devices[number_]->wait(one.mark); });
      }
      lock.lock();
      if (error.code != COLLET_OK) fail_by_work(error);
      if (progress_->status == COLLET_OK) progress_->counter = one.value;
      started_.pop_front();
      look_busy();
      instance_->queue_changed.notify_all();
    }
  }

  Instance* instance_;
  uint32_t number_, kind_;
  uint64_t last_ = 0;  // the point that was signalled last
  std::shared_ptr<Progress> progress_;
  std::deque<Work> work_;
  std::deque<Started> started_;
  bool issuing_ = false, ended_ = false;
  std::atomic<bool> stop_{false};  // running work may end early: the queue has failed
  std::thread issuer_, completer_;
};

/** Copies on a queue. */
inline uint64_t begin_copies(Instance* instance, uint32_t number, bool compute,
                             const std::vector<collet_copy_region>& regions, const std::atomic<bool>& stop) {
  Device* device = instance->devices[number].get();
  for (const collet_copy_region& region : regions) {
    if (stop) break;
    copy_region(region, compute ? device : nullptr, false);
  }
  bool within = false;  // copies within a device need not have ended
  for (const collet_copy_region& region : regions) {
    const Buffer *from = unwrap(region.from.buffer), *to = unwrap(region.to.buffer);
    if (!from || !to || from->device != to->device) continue;
    within |= to->device == device;
    if (to->device != device) complete(to->device);
  }
  if (!within) return 0;
  const uint64_t mark = device->mark();
  if (mark == 0 || compute) return mark;
  device->wait(mark);
  return 0;
}

}  // namespace detail
}  // namespace kernel
}  // namespace collet

#endif
