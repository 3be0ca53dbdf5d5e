// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace collet::tool {

/// Ends the process with exit code 5 if it still runs after `seconds`, because a call that hangs cannot be interrupted.
/// It watches until the process has ended, since the last output and the last release can hang too. The message names
/// the current task. With `seconds` 0 there is no limit.
void watch_process(double seconds);

}  // namespace collet::tool
