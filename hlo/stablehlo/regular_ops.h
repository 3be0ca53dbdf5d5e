// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "hlo/ir/ops.h"

/// \file
/// The table of ops whose operands, their order, and result are the same in StableHLO and HLO.

namespace collet::hlo {

/// Returns Op::ADD for "stablehlo.add"; INVALID for ops that need more than their operands.
Op regular_op(std::string_view name);
/// Returns "stablehlo.add" for Op::ADD; empty for ops that need more than their operands.
std::string_view regular_name(Op op);

}  // namespace collet::hlo
