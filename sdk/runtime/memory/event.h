// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/types.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "hlo/base/status.h"
#include "sdk/runtime/memory/queue.h"

namespace collet::runtime {

/// The completion of a piece of work, with success or failure. Reference-counted; begins with one reference.
///
/// An event is pending until its work has ended (`set`: the event has come). Before that, the work may be put on a queue (`place`).
/// Other work can then be queued to wait for it, and a thread that waits for the event waits for the queue.
class Event {
 public:
  using Callback = void (*)(void* user, collet_status status, const char* message);

  Event() = default;
  /// `late`: the work depends on something that no worker has begun, so a worker that waited for it could block all workers.
  explicit Event(bool late) : late_(late) {}
  /// Makes an event for the end of work that is on a queue.
  explicit Event(Point point) : state_(State::Placed), point_(point) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  /// An event that has come with success, for callers that have nothing to wait for. It is never freed.
  static Event* already();

  void retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release();

  bool is_ready() const { return state_.load(std::memory_order_acquire) == State::Come; }
  /// True if the event has come, or is known to come without a wait: the queue has ended its work, which a thread that waited for it
  /// sees before `set` is called. Never blocks.
  bool has_ended() const { return is_ready() || (is_placed() && point_.queue->has_ended(point_.value)); }
  /// True if the event has come, or its work is on a queue.
  bool is_placed() const { return state_.load(std::memory_order_acquire) != State::Pending; }
  /// True if the event is pending, and no worker may wait for it.
  bool is_late() const { return late_ && !is_placed(); }
  /// Blocks until the event has come; returns its outcome.
  Status wait();
  /// Waits with a time limit; DEADLINE_EXCEEDED if the event has not come by then.
  Status wait_for(uint64_t timeout_ns);
  /// Blocks until the event is placed; returns the outcome if it has come.
  Status wait_placed();
  /// What work must wait for that uses the event's: its outcome if it has come, else `out` gets the point on a queue at which its work
  /// ends. Both are from one moment, so that no failure is missed. May be called only after the event is placed.
  Status dependency(Point& out) const {
    if (is_ready()) return outcome_;
    out = point_;
    return ok_status();
  }
  /// Returns the outcome. May be called only after the event has come.
  const Status& outcome() const { return outcome_; }
  void on_ready(Callback done, void* user) { add_waiter({done, user, false}); }
  /// Calls `done` as soon as the event is placed: with its outcome if it has come by then, else with COLLET_OK.
  void on_placed(Callback done, void* user) { add_waiter({done, user, true}); }
  /// Records that its work is on a queue. Called at most once, and before `set`.
  void place(Point point);
  /// Completes the event with `outcome`. Called once.
  void set(Status outcome);

 private:
  enum class State : uint8_t { Pending, Placed, Come };
  struct Waiter {
    Callback done;
    void* user;
    bool when_placed;
  };
  ~Event() = default;
  static void call(const Waiter& waiter, const Status& outcome);
  void add_waiter(const Waiter& waiter);

  std::atomic<uint32_t> refs_{1};
  std::atomic<State> state_{State::Pending};
  const bool late_ = false;
  Point point_;  // written before the state becomes Placed
  Status outcome_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Waiter> waiters_;
};

}  // namespace collet::runtime
