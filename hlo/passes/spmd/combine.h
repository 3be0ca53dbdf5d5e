// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/ir/module.h"

namespace collet::hlo::spmd {

/// Combines all-reduces that have one kind and equal groups and do not depend on each other into one all-reduce of
/// several arrays.
void combine_all_reduces(Module& module, CompId computation);

}  // namespace collet::hlo::spmd
