// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace collet::tool {

/// Sets the current task, in the words of a message: "reading 'model.hlo'". May be called from any thread.
void begin_task(const std::string& task);
/// Returns the current task.
std::string current_task();
/// Returns the current task, or its beginning; "" if there is none. May be called in a signal handler.
const char* task_of_signal();

}  // namespace collet::tool
