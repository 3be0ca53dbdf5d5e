// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/watchdog.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

#include "sdk/tool/support/crash.h"
#include "sdk/tool/support/task.h"
#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

// Seconds after which the process ends without a message, because another thread may hold a stream that nobody reads.
constexpr unsigned kGrace = 1;

[[noreturn]] void watch(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  std::signal(SIGALRM, [](int) { _exit(kTimeout); });
  alarm(kGrace);
  const std::string task = current_task();
  end_watch();
  const int code = report(kTimeout, fmt::format("no answer within {:g} s: {}", seconds, task));
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace

void watch_process(double seconds) {
  if (seconds > 0) std::thread([seconds] { watch(seconds); }).detach();
}

}  // namespace collet::tool
