// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/event.h"

#include <algorithm>
#include <chrono>
#include <string>

namespace collet::runtime {
namespace {

void call(Event::Callback done, void* user, const Status& outcome) {
  done(user, static_cast<collet_status>(outcome.code()), outcome.message().c_str());
}

}  // namespace

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

Status Event::wait() {
  if (!is_ready()) {
    std::unique_lock lock(mutex_);
    come_.wait(lock, [&] { return is_ready(); });
  }
  return outcome_;
}

Status Event::wait_for(uint64_t timeout_ns) {
  constexpr uint64_t kLongest = uint64_t{1} << 60;  // some thirty years, which clocks can add
  if (!is_ready()) {
    std::unique_lock lock(mutex_);
    if (!come_.wait_for(lock, std::chrono::nanoseconds(std::min(timeout_ns, kLongest)), [&] { return is_ready(); }))
      return Status(Code::DeadlineExceeded, "it has not come in " + std::to_string(timeout_ns) + " ns");
  }
  return outcome_;
}

void Event::on_ready(Callback done, void* user) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_ready()) {
      waiters_.push_back({done, user});
      return;
    }
  }
  call(done, user, outcome_);
}

void Event::set(Status outcome) {
  std::vector<Waiter> waiters;
  {
    const std::lock_guard lock(mutex_);
    outcome_ = std::move(outcome);
    state_.store(State::Come, std::memory_order_release);
    waiters.swap(waiters_);
    come_.notify_all();
  }
  for (const Waiter& w : waiters) call(w.done, w.user, outcome_);
}

}  // namespace collet::runtime
