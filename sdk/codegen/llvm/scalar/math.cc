// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/scalar/math.h"

#include <llvm/IR/MDBuilder.h>

#include <limits>

#include "sdk/codegen/base/real_functions.h"
#include "sdk/codegen/llvm/scalar/math_notation.h"

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

/// Returns the remainders of the lanes of x and y, exactly, by long division in f64: subtracts the largest multiple of s = y * 2^k from
/// what is left of x, where k is such that the multiple has few bits, until less than y is left. Usually that is one turn.
///
/// f32: the multiple q has at most 28 bits. A whole quotient is at least 2^-24 above what could be rounded to it, so that q and q * s
/// are exact. f64: q, of at most 52 bits, may be one too large, which the sign of what is left shows; that is exact in either case.
/// Divisors must be normal numbers in f64, whose exponent can be changed.
llvm::Value* remainder_of_lanes(Ir& ir, llvm::Value* x, llvm::Value* y) {
  auto& b = ir.b;
  const bool is_wide = x->getType()->getScalarType()->isDoubleTy();
  llvm::Type* const f64 = ir.like(x, b.getDoubleTy());
  llvm::Type* const s64 = ir.like(x, b.getInt64Ty());
  const auto size = [&](llvm::Value* v) {
    return ir.unary(llvm::Intrinsic::fabs, is_wide ? v : b.CreateFPExt(v, f64));
  };
  llvm::Value* const zero = llvm::Constant::getNullValue(f64);
  llvm::Value* const infinity = ir.constant(f64, std::numeric_limits<double>::infinity());
  llvm::Value* const dividend = size(x);
  llvm::Value* const divisor = size(y);
  llvm::Value* const is_defined = b.CreateAnd(b.CreateFCmpOLT(dividend, infinity), b.CreateFCmpOGT(divisor, zero));
  llvm::Value* const divides = b.CreateAnd(is_defined, b.CreateFCmpOLT(divisor, infinity));
  llvm::Value* const first = b.CreateSelect(divides, dividend, zero);
  llvm::Value* const by = b.CreateSelect(divides, divisor, ir.constant(f64, 1.0));
  llvm::Function* const f = b.GetInsertBlock()->getParent();
  llvm::BasicBlock* const before = b.GetInsertBlock();
  llvm::BasicBlock* const loop = llvm::BasicBlock::Create(ir.context(), "remainder.turn", f);
  llvm::BasicBlock* const after = llvm::BasicBlock::Create(ir.context(), "remainder.done", f);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  llvm::PHINode* const left = b.CreatePHI(f64, 2);
  left->addIncoming(first, before);
  const auto exponent = [&](llvm::Value* v) { return b.CreateLShr(b.CreateBitCast(v, s64), ir.constant_int(s64, 52)); };
  llvm::Value* const apart = b.CreateSub(exponent(left), exponent(by));
  llvm::Value* const k = ir.binary(llvm::Intrinsic::smax, b.CreateSub(apart, ir.constant_int(s64, is_wide ? 51 : 27)),
                                   ir.constant_int(s64, 0));
  llvm::Value* const scaled = b.CreateAdd(b.CreateBitCast(by, s64), b.CreateShl(k, ir.constant_int(s64, 52)));
  llvm::Value* const s = b.CreateBitCast(scaled, f64);
  llvm::Value* const q = ir.unary(llvm::Intrinsic::trunc, b.CreateFDiv(left, s));
  llvm::Value* next = nullptr;
  if (is_wide) {
    next = ir.exact_fma(ir.neg(q), s, left);
    next = b.CreateSelect(b.CreateFCmpOLT(next, zero), b.CreateFAdd(next, s), next);
  } else {
    next = b.CreateFSub(left, b.CreateFMul(q, s));
  }
  left->addIncoming(next, loop);
  llvm::Value* const more = b.CreateOrReduce(b.CreateFCmpOGE(next, by));
  llvm::MDNode* const weights = llvm::MDBuilder(ir.context()).createBranchWeights(1, 2000);
  b.CreateCondBr(more, loop, after, weights);
  b.SetInsertPoint(after);
  llvm::Value* const found = b.CreateSelect(divides, next, dividend);
  llvm::Value* const r = is_wide ? found : b.CreateFPTrunc(found, x->getType());
  llvm::Value* const with_sign = ir.binary(llvm::Intrinsic::copysign, r, x);
  // A NaN has the sign that C's function gives it, which conversions to types without NaN keep.
  llvm::Value* const product = b.CreateFMul(x, y);
  return b.CreateSelect(is_defined, with_sign, b.CreateFDiv(product, product));
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
  // LLVM calls C's function for each lane. With scalable vectors, kernels have no remainders.
  const bool is_wide = x->getType()->getScalarType()->isDoubleTy();
  if (ir.lanes_of(x) == 1 || ir.is_scalable() || (is_wide && !ir.target.fma)) return ir.b.CreateFRem(x, y);
  if (!is_wide) return remainder_of_lanes(ir, x, y);
  auto& b = ir.b;
  llvm::Function* const f = b.GetInsertBlock()->getParent();
  const auto block = [&](const char* name) { return llvm::BasicBlock::Create(ir.context(), name, f); };
  llvm::BasicBlock* const usual = block("remainder");
  llvm::BasicBlock* const subnormal = block("remainder.subnormal");
  llvm::BasicBlock* const exit = block("remainder.exit");
  llvm::Value* const size = ir.unary(llvm::Intrinsic::fabs, y);
  llvm::Value* const some = b.CreateAnd(b.CreateFCmpOGT(size, llvm::Constant::getNullValue(y->getType())),
                                        b.CreateFCmpOLT(size, ir.constant(y->getType(), 0x1p-1022)));
  b.CreateCondBr(b.CreateOrReduce(some), subnormal, usual, llvm::MDBuilder(ir.context()).createBranchWeights(1, 2000));
  b.SetInsertPoint(usual);
  llvm::Value* const r = remainder_of_lanes(ir, x, y);
  llvm::BasicBlock* const end = b.GetInsertBlock();
  b.CreateBr(exit);
  b.SetInsertPoint(subnormal);
  llvm::Value* const other = b.CreateFRem(x, y);
  b.CreateBr(exit);
  b.SetInsertPoint(exit);
  llvm::PHINode* const result = b.CreatePHI(x->getType(), 2);
  result->addIncoming(r, end);
  result->addIncoming(other, subnormal);
  return result;
}

void sincos(Ir& ir, llvm::Value* x, llvm::Value*& sine, llvm::Value*& cosine) {
  const auto both = elementary::sine_and_cosine(F(ir, x));
  sine = both.sine.v;
  cosine = both.cosine.v;
}

}  // namespace collet::codegen::math
