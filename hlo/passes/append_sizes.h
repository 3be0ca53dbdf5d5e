// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

namespace collet::hlo {

/// Lets a program return, after its own results, the size of each dimension of a result that the data decide: s32 scalars, in
/// the order of the flattened results and of their dimensions. A result that is no tuple becomes the first element of one.
/// Returns how many sizes were appended.
Expected<size_t> append_result_sizes(Module& module);

}  // namespace collet::hlo
