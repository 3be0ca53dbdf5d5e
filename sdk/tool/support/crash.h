// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Says what the process was doing when a backend ends it: by a crash, a stack overflow, or a call of exit.

namespace collet::tool {

/// Begins to watch. From here on the following print "collet: segmentation fault in 'execute' of the backend library ..., while
/// running 'x.hlo' on acme", with the current task and, on the thread that is in it, the function of the backend:
/// - a crash, on all threads and with a full stack too; the signal still ends the process;
/// - exit, _exit and quick_exit before expect_end, and _exit after it; the process then ends with kRuntime.
void begin_watch();

/// From here on main returns, and destructors of libraries run. Sets the task to that.
void expect_end();

/// Ends the watch: the tool itself ends the process.
void end_watch();

}  // namespace collet::tool
