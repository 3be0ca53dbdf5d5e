// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/math.h"

#include "sdk/codegen/base/real_functions.h"
#include "sdk/codegen/llvm/math_notation.h"

namespace collet::codegen::math {
namespace {

template <F (*function)(F)>
llvm::Value* apply(Ir& ir, llvm::Value* x) {
  return function({ir, x}).v;
}

/// Returns the number that all lanes of a constant hold; NaN for any other value.
double constant_of(llvm::Value* y) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(y);
  if (constant && y->getType()->isVectorTy()) constant = constant->getSplatValue();
  const auto* number = constant ? llvm::dyn_cast<llvm::ConstantFP>(constant) : nullptr;
  return number ? number->getValueAPF().convertToDouble() : kNaN;
}

}  // namespace

llvm::Value* exp(Ir& ir, llvm::Value* x) {
  return apply<elementary::exp<F>>(ir, x);
}
llvm::Value* expm1(Ir& ir, llvm::Value* x) {
  return apply<elementary::expm1<F>>(ir, x);
}
llvm::Value* log(Ir& ir, llvm::Value* x) {
  return apply<elementary::log<F>>(ir, x);
}
llvm::Value* log1p(Ir& ir, llvm::Value* x) {
  return apply<elementary::log1p<F>>(ir, x);
}
llvm::Value* logistic(Ir& ir, llvm::Value* x) {
  return apply<elementary::logistic<F>>(ir, x);
}
llvm::Value* sin(Ir& ir, llvm::Value* x) {
  return apply<elementary::sin<F>>(ir, x);
}
llvm::Value* cos(Ir& ir, llvm::Value* x) {
  return apply<elementary::cos<F>>(ir, x);
}
llvm::Value* tan(Ir& ir, llvm::Value* x) {
  return apply<elementary::tan<F>>(ir, x);
}
llvm::Value* asin(Ir& ir, llvm::Value* x) {
  return apply<elementary::asin<F>>(ir, x);
}
llvm::Value* acos(Ir& ir, llvm::Value* x) {
  return apply<elementary::acos<F>>(ir, x);
}
llvm::Value* sinh(Ir& ir, llvm::Value* x) {
  return apply<elementary::sinh<F>>(ir, x);
}
llvm::Value* cosh(Ir& ir, llvm::Value* x) {
  return apply<elementary::cosh<F>>(ir, x);
}
llvm::Value* tanh(Ir& ir, llvm::Value* x) {
  return apply<elementary::tanh<F>>(ir, x);
}
llvm::Value* asinh(Ir& ir, llvm::Value* x) {
  return apply<elementary::asinh<F>>(ir, x);
}
llvm::Value* acosh(Ir& ir, llvm::Value* x) {
  return apply<elementary::acosh<F>>(ir, x);
}
llvm::Value* atanh(Ir& ir, llvm::Value* x) {
  return apply<elementary::atanh<F>>(ir, x);
}
llvm::Value* cbrt(Ir& ir, llvm::Value* x) {
  return apply<elementary::cbrt<F>>(ir, x);
}
llvm::Value* erf(Ir& ir, llvm::Value* x) {
  return apply<elementary::erf<F>>(ir, x);
}

llvm::Value* sqrt(Ir& ir, llvm::Value* x) {
  return root(F(ir, x)).v;
}
llvm::Value* rsqrt(Ir& ir, llvm::Value* x) {
  return (1.0 / root(F(ir, x))).v;
}

llvm::Value* atan2(Ir& ir, llvm::Value* y, llvm::Value* x) {
  return elementary::atan2(F(ir, y), F(ir, x)).v;
}

llvm::Value* pow(Ir& ir, llvm::Value* x, llvm::Value* y) {
  return power_of(F(ir, x), F(ir, y), constant_of(y)).v;
}

llvm::Value* hypot(Ir& ir, llvm::Value* x, llvm::Value* y) {
  return hypotenuse(F(ir, x), F(ir, y)).v;
}

/// Computes the exact remainder by calling a function that does long division in binary.
llvm::Value* fmod(Ir& ir, llvm::Value* x, llvm::Value* y) {
  if (ir.target.has_grid()) {  // for grids, LLVM would replace the division by a multiplication with a rounded quotient
    auto& b = ir.b;
    llvm::Type* const f64 = b.getDoubleTy();
    const llvm::FunctionCallee function = ir.module.getOrInsertFunction("collet_fmod", f64, f64, f64);
    llvm::Value* const result = b.CreateCall(function, {b.CreateFPExt(x, f64), b.CreateFPExt(y, f64)});
    return b.CreateFPTrunc(result, x->getType());  // exact: the remainder has no more bits than its operands
  }
  return ir.b.CreateFRem(x, y);
}

void sincos(Ir& ir, llvm::Value* x, llvm::Value*& sine, llvm::Value*& cosine) {
  const auto both = elementary::sine_and_cosine(F(ir, x));
  sine = both.sine.v;
  cosine = both.cosine.v;
}

}  // namespace collet::codegen::math
