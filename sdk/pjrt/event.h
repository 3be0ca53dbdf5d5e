// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sdk/pjrt/api/basics.h"

namespace collet::pjrt {

/// A one-time event that the plugin itself, or the caller, sets with success or failure.
class Signal {
 public:
  /// The outcome: COLLET_OK, or code and message of the failure.
  struct Outcome {
    collet_status status = COLLET_OK;
    std::string message;
  };
  using Callback = std::function<void(const Outcome&)>;

  /// Sets the outcome; returns false if it was set before.
  bool set(Outcome outcome);
  /// True if the outcome is set.
  bool is_ready() const;
  /// Blocks until the outcome is set.
  const Outcome& wait() const;
  /// Calls `done` when the outcome is set, immediately if it is set already.
  void on_ready(Callback done);

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable come_;
  bool ready_ = false;
  Outcome outcome_;
  std::vector<Callback> callbacks_;
};

/// Returns an event that is set, with success.
PJRT_Event* ready_event();
/// Returns an event for a libcollet event, whose reference it takes over.
PJRT_Event* event_of(collet_event* event);
/// Returns an event that is set with `signal`.
PJRT_Event* event_of(std::shared_ptr<Signal> signal);

}  // namespace collet::pjrt

/// An event that is set by a libcollet event or by a signal; without either it is set already.
struct PJRT_Event {
  collet_event* runtime = nullptr;
  std::shared_ptr<collet::pjrt::Signal> signal;

  PJRT_Event() = default;
  PJRT_Event(const PJRT_Event&) = delete;
  PJRT_Event& operator=(const PJRT_Event&) = delete;
  ~PJRT_Event() { collet_event_release(runtime); }
};
