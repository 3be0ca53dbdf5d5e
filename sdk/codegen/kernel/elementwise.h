// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/types.h>

#include <cstdint>

namespace collet::codegen {

/// The entry of a row of elementwise.def for operands of `type`; none where they have another kind.
template <typename Row>
auto of_kind(const Row& row, uint32_t type) -> decltype(row.real) {
  switch (collet_type_kind(type)) {
    case COLLET_KIND_PRED:
      return row.pred;
    case COLLET_KIND_SIGNED:
    case COLLET_KIND_UNSIGNED:
      return row.integer;
    case COLLET_KIND_FLOAT:
      return row.real;
    case COLLET_KIND_COMPLEX:
      return row.complex;
    default:
      return {};
  }
}

/// Whether kernels compute the op element by element for operands of this type.
bool has_elementwise(uint32_t opcode, uint32_t operand_type);

/// Whether the op takes tens of instructions. False for ops that are not elementwise.
bool is_expensive(uint32_t opcode);

/// The opcode that a known combination of two elements (COLLET_COMBINE_ADD to XOR) is; 0 for others.
uint32_t combine_opcode(uint32_t combine);

}  // namespace collet::codegen
