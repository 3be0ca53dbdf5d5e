// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace collet::tool {

/// Says what the command does from now on, in the words of a message: "reading 'model.hlo'". Any thread.
void begin_task(std::string task);
/// Returns the current task.
std::string current_task();

}  // namespace collet::tool
