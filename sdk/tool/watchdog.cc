// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/watchdog.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "sdk/tool/verb.h"

namespace collet::tool {

Watchdog::Watchdog(double seconds, std::string task) : seconds_(seconds), task_(std::move(task)) {
  if (seconds_ > 0) thread_ = std::thread([this] { wait(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::now(std::string task) {
  const std::lock_guard lock(mutex_);
  task_ = std::move(task);
}

void Watchdog::wait() {
  std::unique_lock lock(mutex_);
  if (ended_.wait_for(lock, std::chrono::duration<double>(seconds_), [this] { return over_; })) return;
  const int code = report(kTimeout, fmt::format("no answer within {:g} s: {}", seconds_, task_));
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace collet::tool
