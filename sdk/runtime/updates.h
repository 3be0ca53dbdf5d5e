// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/runtime/plan.h"

namespace collet::runtime {

/// Finds results that are an argument of their launch with some elements changed, where nothing reads the argument
/// afterwards: CompiledCluster::updates. So a loop that the host runs need not copy an array to change a little of it.
void find_updates(const hlo::Module& module, Lowered& lowered);

}  // namespace collet::runtime
