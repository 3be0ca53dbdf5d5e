// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/event.h"

#include <utility>

#include "sdk/pjrt/call.h"

namespace collet::pjrt {

bool Signal::set(Outcome outcome) {
  std::vector<Callback> callbacks;
  {
    const std::lock_guard lock(mutex_);
    if (ready_) return false;
    outcome_ = std::move(outcome);
    ready_ = true;
    callbacks.swap(callbacks_);
  }
  come_.notify_all();
  for (const Callback& callback : callbacks) callback(outcome_);
  return true;
}

bool Signal::is_ready() const {
  const std::lock_guard lock(mutex_);
  return ready_;
}

const Signal::Outcome& Signal::wait() const {
  std::unique_lock lock(mutex_);
  come_.wait(lock, [&] { return ready_; });
  return outcome_;
}

void Signal::on_ready(Callback done) {
  {
    const std::lock_guard lock(mutex_);
    if (!ready_) {
      callbacks_.push_back(std::move(done));
      return;
    }
  }
  done(outcome_);
}

PJRT_Event* ready_event() {
  return new PJRT_Event;
}

PJRT_Event* event_of(collet_event* event) {
  auto* out = new PJRT_Event;
  out->runtime = event;
  return out;
}

PJRT_Event* event_of(std::shared_ptr<Signal> signal) {
  auto* out = new PJRT_Event;
  out->signal = std::move(signal);
  return out;
}

namespace {

PJRT_Error* outcome_of(PJRT_Event& event) {
  if (event.runtime) COLLET_PJRT_TRY(collet_event_wait(event.runtime, &failure));
  if (const std::shared_ptr<Signal> signal = event.signal) {
    const Signal::Outcome& outcome = signal->wait();
    return from_collet(outcome.status, outcome.message.c_str());
  }
  return nullptr;
}

bool is_ready(PJRT_Event& event) {
  return (!event.runtime || collet_event_is_ready(event.runtime)) && (!event.signal || event.signal->is_ready());
}

// The data of an OnReady callback. They outlive the event, which the caller may destroy earlier.
struct Waiting {
  PJRT_Event_OnReadyCallback callback;
  void* user;
};

void tell(void* user, collet_status status, const char* message) {
  const std::unique_ptr<Waiting> waiting(static_cast<Waiting*>(user));
  waiting->callback(from_collet(status, message), waiting->user);
}

}  // namespace

PJRT_Error* call(PJRT_Event_Destroy_Args& args) {
  delete args.event;
  return nullptr;
}

PJRT_Error* call(PJRT_Event_IsReady_Args& args) {
  args.is_ready = is_ready(*args.event);
  return nullptr;
}

PJRT_Error* call(PJRT_Event_Error_Args& args) {
  if (!is_ready(*args.event)) return failed_precondition("the event has not come yet");
  return outcome_of(*args.event);
}

PJRT_Error* call(PJRT_Event_Await_Args& args) {
  return outcome_of(*args.event);
}

PJRT_Error* call(PJRT_Event_OnReady_Args& args) {
  if (!args.callback) return invalid_argument("no callback");
  if (args.event->runtime) {
    collet_event_on_ready(args.event->runtime, tell, new Waiting{args.callback, args.user_arg});
  } else if (const std::shared_ptr<Signal> signal = args.event->signal) {
    signal->on_ready([callback = args.callback, user = args.user_arg](const Signal::Outcome& outcome) {
      callback(from_collet(outcome.status, outcome.message.c_str()), user);
    });
  } else {
    args.callback(nullptr, args.user_arg);
  }
  return nullptr;
}

PJRT_Error* call(PJRT_Event_Create_Args& args) {
  args.event = event_of(std::make_shared<Signal>());
  return nullptr;
}

PJRT_Error* call(PJRT_Event_Set_Args& args) {
  // A waiting thread may destroy the event as soon as it is set.
  const std::shared_ptr<Signal> signal = args.event->signal;
  if (!signal) return failed_precondition("this event is not the caller's to set");
  Signal::Outcome outcome;
  outcome.status = static_cast<collet_status>(args.error_code);
  if (args.error_message) outcome.message.assign(args.error_message, args.error_message_size);
  if (!signal->set(std::move(outcome))) return failed_precondition("the event was set before");
  return nullptr;
}

}  // namespace collet::pjrt
