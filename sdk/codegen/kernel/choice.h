// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/kernel.h>

#include <cstdint>
#include <vector>

/// \file
/// Recognises bodies of reductions that select one of their operands, as the body of argmax does.

namespace collet::codegen {

/// True if `body`, of a reduction of elements of `types`, only compares and selects, and is associative: reducing (x,
/// y), z gives the same as x, (y, z). Such a reduction can be split into parts that keep their order. The proof tries
/// all orders of three elements, which takes some hundred microseconds.
bool is_associative_choice(const ScalarBody& body, const std::vector<uint32_t>& types);

}  // namespace collet::codegen
