// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace collet::tool {

/// Ends the process with exit code 5 if it still runs after `seconds`, because a call that hangs cannot be interrupted. It
/// watches until the process is gone, since what is printed last and what is released last can hang too. The message
/// names the present task. `seconds` 0: nothing is watched.
void watch_process(double seconds);

}  // namespace collet::tool
