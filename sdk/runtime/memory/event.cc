// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/memory/event.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace collet::runtime {

void Event::call(const Waiter& waiter, const Status& outcome) {
  waiter.done(waiter.user, static_cast<collet_status>(outcome.code()), outcome.message().c_str());
}

Event* Event::already() {
  static Event* event = [] {
    auto* e = new Event;
    e->set(ok_status());
    return e;
  }();
  return event;
}

void Event::release() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  delete this;
}

Status Event::wait_placed() {
  if (!is_placed()) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_placed(); });
  }
  return is_ready() ? outcome_ : ok_status();
}

Status Event::wait() {
  COLLET_TRY(wait_placed());
  return is_ready() ? outcome_ : point_.queue->wait(point_.value);
}

Status Event::wait_for(uint64_t timeout_ns) {
  using Clock = std::chrono::steady_clock;
  constexpr uint64_t kLongest = uint64_t{1} << 60;  // about thirty years in ns, which can be added to clock values
  const auto late = [&] {
    return Status(Code::DeadlineExceeded, "it has not come in " + std::to_string(timeout_ns) + " ns");
  };
  if (is_ready()) return outcome_;
  const Clock::time_point end = Clock::now() + std::chrono::nanoseconds(std::min(timeout_ns, kLongest));
  {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_until(lock, end, [&] { return is_placed(); })) return late();
    if (is_ready()) return outcome_;
  }
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(end - Clock::now()).count();
  Status status = point_.queue->wait(point_.value, static_cast<uint64_t>(std::max<int64_t>(left, 0)));
  return status.code() == Code::DeadlineExceeded && !point_.queue->has_failed() ? late() : status;
}

void Event::add_waiter(const Waiter& waiter) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_ready() && !(waiter.when_placed && is_placed())) {
      waiters_.push_back(waiter);
      return;
    }
  }
  call(waiter, is_ready() ? outcome_ : ok_status());
}

void Event::place(Point point) {
  std::vector<Waiter> waiters;
  {
    const std::lock_guard lock(mutex_);
    point_ = point;
    state_.store(State::Placed, std::memory_order_release);
    const auto rest =
        std::stable_partition(waiters_.begin(), waiters_.end(), [](const Waiter& w) { return !w.when_placed; });
    waiters.assign(rest, waiters_.end());
    waiters_.erase(rest, waiters_.end());
    changed_.notify_all();
  }
  for (const Waiter& w : waiters) call(w, ok_status());
}

void Event::set(Status outcome) {
  std::vector<Waiter> waiters;
  {
    const std::lock_guard lock(mutex_);
    outcome_ = std::move(outcome);
    state_.store(State::Come, std::memory_order_release);
    waiters.swap(waiters_);
    changed_.notify_all();
  }
  for (const Waiter& w : waiters) call(w, outcome_);
}

}  // namespace collet::runtime
