// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/ir/module.h"

namespace collet::hlo::spmd {

/// All-reduces of one kind among the same partitions that do not wait for each other become one of several arrays: the
/// partitions meet once.
void combine_all_reduces(Module& module, CompId computation);

}  // namespace collet::hlo::spmd
