// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/task.h"

#include <mutex>
#include <utility>

namespace collet::tool {
namespace {

struct Present {
  std::mutex mutex;
  std::string task;
};

// Never destroyed, because the watchdog may read it until the process ends.
Present& present() {
  static auto* const one = new Present;
  return *one;
}

}  // namespace

void begin_task(std::string task) {
  Present& now = present();
  const std::lock_guard lock(now.mutex);
  now.task = std::move(task);
}

std::string current_task() {
  Present& now = present();
  const std::lock_guard lock(now.mutex);
  return now.task;
}

}  // namespace collet::tool
