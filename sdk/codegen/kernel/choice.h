// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sdk/codegen/kernel/kernel.h"

/// \file
/// Bodies of reductions that choose one of their operands, as those of argmax do.

namespace collet::codegen {

/// Whether `body`, of a reduction of elements of `types`, only compares and chooses, and gives the same for (x, y), z as for
/// x, (y, z). Each result is then that of one of the operands, and a row may be folded in parts that keep their order.
/// The proof goes through all orders in which three elements can be, so it costs some hundred microseconds.
bool is_associative_choice(const ScalarBody& body, const std::vector<uint32_t>& types);

}  // namespace collet::codegen
