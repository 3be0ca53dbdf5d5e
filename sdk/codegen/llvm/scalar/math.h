// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Emits mathematical functions as IR, for f32 and f64, scalars and vectors. The largest error found for each is in
/// math_test.cc.

#include "sdk/codegen/llvm/ir.h"

namespace collet::codegen::math {

using Function = llvm::Value* (*)(Ir&, llvm::Value*);

llvm::Value* exp(Ir& ir, llvm::Value* x);
llvm::Value* expm1(Ir& ir, llvm::Value* x);
llvm::Value* log(Ir& ir, llvm::Value* x);
llvm::Value* log1p(Ir& ir, llvm::Value* x);
llvm::Value* sin(Ir& ir, llvm::Value* x);
llvm::Value* cos(Ir& ir, llvm::Value* x);
llvm::Value* tan(Ir& ir, llvm::Value* x);
llvm::Value* asin(Ir& ir, llvm::Value* x);
llvm::Value* acos(Ir& ir, llvm::Value* x);
llvm::Value* atan2(Ir& ir, llvm::Value* y, llvm::Value* x);
llvm::Value* sinh(Ir& ir, llvm::Value* x);
llvm::Value* cosh(Ir& ir, llvm::Value* x);
llvm::Value* tanh(Ir& ir, llvm::Value* x);
llvm::Value* asinh(Ir& ir, llvm::Value* x);
llvm::Value* acosh(Ir& ir, llvm::Value* x);
llvm::Value* atanh(Ir& ir, llvm::Value* x);
llvm::Value* logistic(Ir& ir, llvm::Value* x);
llvm::Value* sqrt(Ir& ir, llvm::Value* x);
llvm::Value* rsqrt(Ir& ir, llvm::Value* x);
llvm::Value* cbrt(Ir& ir, llvm::Value* x);
llvm::Value* erf(Ir& ir, llvm::Value* x);
llvm::Value* pow(Ir& ir, llvm::Value* x, llvm::Value* y);
/// Emits the exact remainder of a division that is truncated towards zero.
llvm::Value* fmod(Ir& ir, llvm::Value* x, llvm::Value* y);
/// Emits sqrt(x * x + y * y) without overflow.
llvm::Value* hypot(Ir& ir, llvm::Value* x, llvm::Value* y);
/// Emits sine and cosine together.
void sincos(Ir& ir, llvm::Value* x, llvm::Value*& sine, llvm::Value*& cosine);

}  // namespace collet::codegen::math
