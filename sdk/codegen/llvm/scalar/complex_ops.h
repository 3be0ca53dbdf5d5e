// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/codegen/llvm/scalar/scalar_ops.h"

namespace collet::codegen {

/// Declares a function of elementwise.def for complex elements.
#define COLLET_COMPLEX_OP(name) Val complex_##name(Ir& ir, const ScalarOp& op);
COLLET_COMPLEX_OP(abs)
COLLET_COMPLEX_OP(acos)
COLLET_COMPLEX_OP(acosh)
COLLET_COMPLEX_OP(add)
COLLET_COMPLEX_OP(asin)
COLLET_COMPLEX_OP(asinh)
COLLET_COMPLEX_OP(atan2)
COLLET_COMPLEX_OP(atanh)
COLLET_COMPLEX_OP(cosh)
COLLET_COMPLEX_OP(cosine)
COLLET_COMPLEX_OP(divide)
COLLET_COMPLEX_OP(exp)
COLLET_COMPLEX_OP(expm1)
COLLET_COMPLEX_OP(imag)
COLLET_COMPLEX_OP(log)
COLLET_COMPLEX_OP(log1p)
COLLET_COMPLEX_OP(logistic)
COLLET_COMPLEX_OP(multiply)
COLLET_COMPLEX_OP(negate)
COLLET_COMPLEX_OP(power)
COLLET_COMPLEX_OP(real)
COLLET_COMPLEX_OP(rsqrt)
COLLET_COMPLEX_OP(sign)
COLLET_COMPLEX_OP(sine)
COLLET_COMPLEX_OP(sinh)
COLLET_COMPLEX_OP(sqrt)
COLLET_COMPLEX_OP(subtract)
COLLET_COMPLEX_OP(tan)
COLLET_COMPLEX_OP(tanh)
#undef COLLET_COMPLEX_OP

/// Returns the lexicographically greater or lesser number.
template <bool kMax>
Val complex_extreme(Ir& ir, const ScalarOp& op) {
  auto& b = ir.b;
  const Val& x = op.args[0];
  const Val& y = op.args[1];
  auto beats = [&](llvm::Value* p, llvm::Value* q) { return kMax ? b.CreateFCmpOGT(p, q) : b.CreateFCmpOLT(p, q); };
  llvm::Value* tie = b.CreateAnd(b.CreateFCmpOEQ(x.v, y.v), beats(x.im, y.im));
  return ir.select(b.CreateOr(beats(x.v, y.v), tie), x, y);
}

}  // namespace collet::codegen
