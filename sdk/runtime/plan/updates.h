// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/runtime/plan/plan.h"

namespace collet::runtime {

/// Finds results of launches that are an argument with some elements changed, if nothing reads the argument afterwards,
/// and stores them in CompiledCluster::updates. A loop that the host runs then need not copy an array to change a few
/// elements.
void find_updates(const hlo::Module& module, Lowered& lowered);

}  // namespace collet::runtime
