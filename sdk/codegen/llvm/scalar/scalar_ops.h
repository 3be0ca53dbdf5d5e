// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Emits elementwise ops as IR, by the table kernel/elementwise.def.

#include <span>

#include "sdk/codegen/llvm/ir.h"

namespace collet::codegen {

/// An elementwise op on values.
struct ScalarOp {
  uint32_t opcode = 0;
  uint32_t result_type = 0;
  std::span<const uint32_t> types;  ///< element types of the operands
  std::span<const Val> args;        ///< the operands, all with the same number of lanes
  int64_t a = 0;                    ///< comparison direction, or exponent bits of reduce-precision
  int64_t b = 0;                    ///< comparison type, or mantissa bits of reduce-precision
};

/// Emits an op. It must be supported, see has_elementwise.
Val emit_scalar(Ir& ir, const ScalarOp& op);

/// Emits the combination of two elements that COLLET_COMBINE_* names.
Val emit_combine(Ir& ir, uint32_t combine, uint32_t type, const Val& x, const Val& y);
/// Returns the identity of a combination: combined with it, another value stays the same.
Val combine_identity(Ir& ir, uint32_t combine, uint32_t type);

}  // namespace collet::codegen
