// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "hlo/ir/ops.h"

/// \file
/// Ops whose operands, order and result are the same in StableHLO and HLO.

namespace collet::hlo {

/// "stablehlo.add" to Op::ADD; INVALID for ops that need more than their operands.
Op regular_op(std::string_view name);
/// Op::ADD to "stablehlo.add"; empty for ops that need more than their operands.
std::string_view regular_name(Op op);

}  // namespace collet::hlo
