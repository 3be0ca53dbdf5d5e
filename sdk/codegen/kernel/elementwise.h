// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/types.h>

#include <cstddef>
#include <cstdint>

namespace collet::codegen {

/// Returns the column of a row of elementwise.def for operands of `type`; the null entry if the type has another kind.
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

/// True if kernels compute the op element by element for operands of this type.
bool has_elementwise(uint32_t opcode, uint32_t operand_type);

/// True if the op takes tens of instructions. False for ops that are not elementwise.
bool is_expensive(uint32_t opcode);

/// Returns the number of operands of an op; the least where it varies.
size_t operands_of(uint32_t opcode);

/// Returns the opcode of a known combination of two elements (COLLET_COMBINE_ADD to XOR); 0 for others.
uint32_t combine_opcode(uint32_t combine);

}  // namespace collet::codegen
