// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "conformance/cases/case.h"
#include "hlo/ir/ops.h"
#include "hlo/ir/types.h"

namespace collet::conformance {

/// The element types that cases are made for: those that an op of this set has. `narrow`: 4- and 8-bit ones that only
/// store and move in most programs are among them.
std::vector<hlo::Type> types_of(hlo::TypeSet set, bool narrow = false);
/// Every element type of data that an op of this set has.
std::vector<hlo::Type> all_types_of(hlo::TypeSet set);
/// One type of each width and kind, for ops that move data.
std::vector<hlo::Type> moving_types();
/// Returns the values with which ops that move data are tried: of formats with few values, those with signs and NaN.
Values moving_values(hlo::Type type);

}  // namespace collet::conformance
