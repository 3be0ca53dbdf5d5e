// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace collet::codegen {

/// Whether kernels compute the op element by element for operands of this type.
bool has_elementwise(uint32_t opcode, uint32_t operand_type);

/// Whether the op takes tens of instructions. False for ops that are not elementwise.
bool is_expensive(uint32_t opcode);

}  // namespace collet::codegen
