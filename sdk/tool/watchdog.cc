// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/watchdog.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

// Seconds after which the process ends without its message: another thread may hold a stream that nobody reads.
constexpr unsigned kGrace = 1;

}  // namespace

Watchdog& Watchdog::of_process(double seconds, std::string task) {
  // Never destroyed: its thread uses it until the process is gone.
  static Watchdog* const one = new Watchdog(seconds, std::move(task));
  if (seconds > 0) std::thread([] { one->wait(); }).detach();
  return *one;
}

void Watchdog::now(std::string task) {
  const std::lock_guard lock(mutex_);
  task_ = std::move(task);
}

void Watchdog::wait() {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds_));
  std::signal(SIGALRM, [](int) { _exit(kTimeout); });
  alarm(kGrace);
  const std::lock_guard lock(mutex_);
  const int code = report(kTimeout, fmt::format("no answer within {:g} s: {}", seconds_, task_));
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace collet::tool
