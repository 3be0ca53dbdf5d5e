// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

namespace collet::hlo {

/// Lets an instruction compute each array that a program returns, also one that is an argument, a constant, or returned a second
/// time: a reshape to the same shape. For a program that becomes one function, which writes all results. Simplification would undo
/// it. Returns how many results it changed.
Expected<size_t> own_results(Module& module);

}  // namespace collet::hlo
