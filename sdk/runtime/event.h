// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/types.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "hlo/base/status.h"

namespace collet::runtime {

/// A moment that comes once, with success or failure. Reference-counted; begins with one reference.
class Event {
 public:
  using Callback = void (*)(void* user, collet_status status, const char* message);

  Event() = default;
  /// `late`: it waits for something that is not yet in any worker's hands, so that no worker may wait for it.
  explicit Event(bool late) : late_(late) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  /// One that has come with success, for all who have nothing to wait for. It is never freed.
  static Event* already();

  void retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release();

  bool is_ready() const { return state_.load(std::memory_order_acquire) != State::Pending; }
  /// Has not come, and no worker may wait for it.
  bool is_late() const { return late_ && !is_ready(); }
  /// Blocks until it has come; its outcome.
  Status wait();
  /// DEADLINE_EXCEEDED when it has not come by then.
  Status wait_for(uint64_t timeout_ns);
  /// Only after it has come.
  const Status& outcome() const { return outcome_; }
  void on_ready(Callback done, void* user);
  /// It comes, now. Once.
  void set(Status outcome);

 private:
  enum class State : uint8_t { Pending, Come };
  struct Waiter {
    Callback done;
    void* user;
  };
  ~Event() = default;

  std::atomic<uint32_t> refs_{1};
  std::atomic<State> state_{State::Pending};
  const bool late_ = false;
  Status outcome_;
  std::mutex mutex_;
  std::condition_variable come_;
  std::vector<Waiter> waiters_;
};

}  // namespace collet::runtime
