// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace collet::codegen {

/// Whether kernels compute the op element by element for operands of this type.
bool has_elementwise(uint32_t opcode, uint32_t operand_type);

/// Whether the op takes tens of instructions. False for ops that are not elementwise.
bool is_expensive(uint32_t opcode);

/// The opcode that a known combination of two elements (COLLET_COMBINE_ADD to XOR) is; 0 for others.
uint32_t combine_opcode(uint32_t combine);

}  // namespace collet::codegen
