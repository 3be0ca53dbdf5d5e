// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/task.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "hlo/base/utf8.h"

namespace collet::tool {
namespace {

struct Present {
  std::mutex mutex;
  std::string task;
  // Copies for signal handlers. A new one goes to the buffer that is not shown.
  char copies[2][1024] = {};
  std::atomic<int> shown{0};
};

// Never destroyed, because the watchdog may read it until the process ends.
Present& present() {
  static auto* const one = new Present;
  return *one;
}

}  // namespace

void begin_task(const std::string& task) {
  Present& now = present();
  const std::lock_guard lock(now.mutex);
  now.task = printable(task, Lines::One);
  const int next = 1 - now.shown.load(std::memory_order_relaxed);
  const size_t size = std::min(now.task.size(), sizeof now.copies[next] - 1);
  std::memcpy(now.copies[next], now.task.data(), size);
  now.copies[next][size] = '\0';
  now.shown.store(next, std::memory_order_release);
}

std::string current_task() {
  Present& now = present();
  const std::lock_guard lock(now.mutex);
  return now.task;
}

const char* task_of_signal() {
  const Present& now = present();
  return now.copies[now.shown.load(std::memory_order_acquire)];
}

}  // namespace collet::tool
