// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/program.h>

#include <cstdint>

namespace collet::mutants {

/// True if a program has an op with this opcode, in any region.
inline bool has_op(const collet_program* program, uint32_t opcode) {
  for (uint32_t i = 0; i < program->ops.count; ++i)
    if (collet_op_at(program, i)->opcode == opcode) return true;
  return false;
}

}  // namespace collet::mutants
