// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "hlo/ir/ops.h"

namespace collet::hlo {

/// The op reference as Markdown, made from the op table: each op with its class, operands, element types, computations
/// and error bound, family by family, with the rules that its shapes hold to; then each attribute record with its fields.
std::string op_reference_markdown();

/// Does the expansion of `op`, elementwise, exact or math, of a float type compute with integers of the float's width?
bool expands_by_integers(Op op);
/// Also with integers of twice the width of f32?
bool expands_by_wider_integers(Op op);

}  // namespace collet::hlo
