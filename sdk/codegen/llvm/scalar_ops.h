// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Element-wise ops as IR: one row of a table each.

#include <span>

#include "sdk/codegen/llvm/ir.h"

namespace collet::codegen {

/// One element-wise computation.
struct ScalarOp {
  uint32_t opcode = 0;
  uint32_t result_type = 0;
  std::span<const uint32_t> types;  ///< of the operands
  std::span<const Val> args;        ///< all of the same number of lanes
  int64_t a = 0;                    ///< comparison direction; exponent bits of reduce-precision
  int64_t b = 0;                    ///< comparison type; mantissa bits
};

/// Emits it. The op must be supported: see has_elementwise.
Val emit_scalar(Ir& ir, const ScalarOp& op);

/// The combination of two elements that COLLET_COMBINE_* stands for.
Val emit_combine(Ir& ir, uint32_t combine, uint32_t type, const Val& x, const Val& y);
/// The value that leaves the other unchanged.
Val combine_identity(Ir& ir, uint32_t combine, uint32_t type);

}  // namespace collet::codegen
