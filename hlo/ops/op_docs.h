// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "hlo/ir/ops.h"

namespace collet::hlo {

/// The op reference as Markdown, made from the op table: each op with its class, operands, element types, computations
/// and error bound, family by family, with the rules that its shapes hold to; then each attribute record with its fields.
std::string op_reference_markdown();

/// Whether the expansion of `op`, an elementwise op on floats, computes with integers as wide as the floats.
bool expands_by_integers(Op op);
/// Whether the expansion of `op` for f32 also computes with integers of 64 bits.
bool expands_by_wider_integers(Op op);

}  // namespace collet::hlo
