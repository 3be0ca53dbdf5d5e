// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "hlo/ir/ops.h"

namespace collet::hlo {

/// Returns the op reference as Markdown, generated from the op table: each op with its class, operands, element types,
/// computations and error bound, family by family, with the rules for its shapes; then each attribute record with its
/// fields.
std::string op_reference_markdown();

/// True if the expansion of `op`, an elementwise op on floats, computes with integers as wide as the floats.
bool expands_by_integers(Op op);
/// True if the expansion of `op` for f32 also computes with 64-bit integers.
bool expands_by_wider_integers(Op op);

}  // namespace collet::hlo
