// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/runtime/run/run_state.h"

/// \file
/// The step of a run that launches a compiled program.

namespace collet::runtime {

/// Launches the program of a step for the participants `who`: passes its arguments in the layouts that it requires,
/// memory for its results, and workspace. On devices with queues it returns when the launches are queued.
Status launch(RunState& run, const Step& step, Frame& frame, Who who);

}  // namespace collet::runtime
