// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/codegen/llvm/scalar/scalar_ops.h"

namespace collet::codegen {

/// Emit the elementwise ops that change the type or precision of an element.
Val scalar_convert(Ir& ir, const ScalarOp& op);
/// Emits a bitcast between types of the same width.
Val scalar_bitcast(Ir& ir, const ScalarOp& op);
Val scalar_reduce_precision(Ir& ir, const ScalarOp& op);
Val scalar_stochastic_convert(Ir& ir, const ScalarOp& op);

}  // namespace collet::codegen
