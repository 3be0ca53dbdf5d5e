// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace collet::tool {

/// Ends the process with exit code 5 when it is still there after some seconds: whatever hangs cannot be called back.
class Watchdog {
 public:
  /// `seconds` 0: it never does. What is blamed: "no answer within 5 s: " and `task`.
  Watchdog(double seconds, std::string task);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// What is being done now.
  void now(std::string task);

 private:
  void wait();

  const double seconds_;
  std::string task_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace collet::tool
