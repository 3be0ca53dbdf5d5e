// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/codegen/llvm/scalar_ops.h"

namespace collet::codegen {

/// Rows of the table of element-wise ops that change the type or precision of an element.
Val scalar_convert(Ir& ir, const ScalarOp& op);
/// Between types of the same width.
Val scalar_bitcast(Ir& ir, const ScalarOp& op);
Val scalar_reduce_precision(Ir& ir, const ScalarOp& op);
Val scalar_stochastic_convert(Ir& ir, const ScalarOp& op);

}  // namespace collet::codegen
