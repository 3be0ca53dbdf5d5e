// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "conformance/cases/case.h"
#include "hlo/ir/ops.h"
#include "hlo/ir/types.h"

namespace collet::conformance {

/// Returns the element types of the set for which cases are made. With `narrow` it includes 4- and 8-bit types, which most programs
/// only store and move.
std::vector<hlo::Type> types_of(hlo::TypeSet set, bool narrow = false);
/// Returns every element type of data in the set.
std::vector<hlo::Type> all_types_of(hlo::TypeSet set);
/// Returns one type of each width and kind, for ops that move data.
std::vector<hlo::Type> moving_types();
/// Returns the kind of values that ops which move data are tested with. For narrow formats it includes negative numbers and NaN.
Values moving_values(hlo::Type type);

}  // namespace collet::conformance
