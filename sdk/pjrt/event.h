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

/// A moment that the plugin itself, or the caller, brings about: once, with success or failure.
class Signal {
 public:
  /// COLLET_OK, or why it failed.
  struct Outcome {
    collet_status status = COLLET_OK;
    std::string message;
  };
  using Callback = std::function<void(const Outcome&)>;

  /// The moment has come; false if it had come before.
  bool set(Outcome outcome);
  /// Whether it has come.
  bool is_ready() const;
  /// Blocks until it has.
  const Outcome& wait() const;
  /// Calls `done` when it has come, perhaps at once.
  void on_ready(Callback done);

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable come_;
  bool ready_ = false;
  Outcome outcome_;
  std::vector<Callback> callbacks_;
};

/// An event that has come, with success.
PJRT_Event* ready_event();
/// Takes the caller's reference of a libcollet event.
PJRT_Event* event_of(collet_event* event);
/// An event that comes with `signal`.
PJRT_Event* event_of(std::shared_ptr<Signal> signal);

}  // namespace collet::pjrt

/// Comes with a libcollet event or with a signal; with neither it has come already.
struct PJRT_Event {
  collet_event* runtime = nullptr;
  std::shared_ptr<collet::pjrt::Signal> signal;

  PJRT_Event() = default;
  PJRT_Event(const PJRT_Event&) = delete;
  PJRT_Event& operator=(const PJRT_Event&) = delete;
  ~PJRT_Event() { collet_event_release(runtime); }
};
