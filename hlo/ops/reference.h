// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace collet::hlo {

/// The op reference as Markdown, made from the op table: each op with its class, operands, element types, computations
/// and error bound, family by family, with the rules that its shapes hold to; then each attribute record with its fields.
std::string op_reference_markdown();

}  // namespace collet::hlo
