// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "sdk/codegen/kernel/kernel.h"

/// \file
/// Changes of loop nests that leave what a kernel computes as it is.

namespace collet::codegen {

/// Merges adjacent loops that every access walks as one, and drops loops of size 1 but that of a scan. Loops before `first`
/// stay.
void collapse_loops(Kernel& kernel, size_t first = 0);

/// Makes elements that the kernel only moves, whatever their type, unsigned integers of as many bits: nothing has to be taken
/// apart or widened. Leaves kernels that compute with such elements, or have more than loads, choices and stores, as they
/// are.
void move_as_integers(Kernel& kernel);

/// Puts the loops in the order of `groups`, all outer, and makes each group, outermost loop first, one loop; an empty
/// one becomes a loop of size 1. Loops in no group must be of size 1. False where some access does not walk a group as
/// one loop; the kernel is lost then.
bool regroup_loops(Kernel& kernel, const std::vector<std::vector<size_t>>& groups);

}  // namespace collet::codegen
