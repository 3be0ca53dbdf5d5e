// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>
#include <utility>

namespace collet::tool {

/// Ends the process with exit code 5 when it is still there after some seconds: whatever hangs cannot be called back.
class Watchdog {
 public:
  /// Starts the one of this process, which watches until the process is gone: what is printed last and what is released
  /// last can hang too. `seconds` 0: it never ends anything. What is blamed: "no answer within 5 s: " and `task`.
  static Watchdog& of_process(double seconds, std::string task);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// What is being done now.
  void now(std::string task);

 private:
  Watchdog(double seconds, std::string task) : seconds_(seconds), task_(std::move(task)) {}
  [[noreturn]] void wait();

  const double seconds_;
  std::string task_;
  std::mutex mutex_;
};

}  // namespace collet::tool
