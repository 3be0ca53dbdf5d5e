// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "sdk/codegen/llvm/math.h"
#include "sdk/codegen/llvm/math_notation.h"

namespace collet::codegen::math {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = 3.14159265358979311600e+00;
constexpr double kPiLow = 1.22464679914735317720e-16;
constexpr double kHalfPi = 1.57079632679489655800e+00;
constexpr double kHalfPiLow = 6.12323399573676603587e-17;
constexpr double kHalfPiLowest = -1.49738490485916983294e-33;

/// x = quarter * pi / 2 + r + r_low, all f64. Beyond what three parts of pi can do, lane by lane in a function.
struct Reduced {
  F r;
  F r_low;
  llvm::Value* quarter;  ///< low two bits count
};

Reduced reduce_quarter(F x) {
  Ir& ir = *x.ir;
  auto& b = ir.b;
  const int lanes = Ir::lanes_of(x.v);
  F n = nearest(x * 6.36619772367581382433e-01);
  F r = exact_fma(-n, n.k(kHalfPi), x);
  F t = exact_fma(-n, n.k(kHalfPiLow), r);
  F t_low = exact_fma(-n, n.k(kHalfPiLow), r - t);
  t_low = exact_fma(-n, n.k(kHalfPiLowest), t_low);
  llvm::Value* quarter = bits(n + 6755399441055744.0);

  // The slow way is taken when any lane is large.
  llvm::Value* large = abs(x) > 1048576.0;
  llvm::Value* any = lanes == 1 ? large : b.CreateOrReduce(large);
  llvm::Function* f = b.GetInsertBlock()->getParent();
  auto& context = ir.context();
  llvm::BasicBlock* before = b.GetInsertBlock();
  llvm::BasicBlock* slow = llvm::BasicBlock::Create(context, "reduce.slow", f);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context, "reduce.done", f);
  llvm::MDNode* weights = llvm::MDNode::get(
      context, {llvm::MDString::get(context, "branch_weights"), llvm::ConstantAsMetadata::get(b.getInt32(1)),
                llvm::ConstantAsMetadata::get(b.getInt32(2000))});
  b.CreateCondBr(any, slow, after, weights);
  b.SetInsertPoint(slow);
  llvm::IRBuilder<> entry(&f->getEntryBlock(), f->getEntryBlock().begin());
  auto slot = [&](llvm::Type* type) {
    llvm::AllocaInst* a = entry.CreateAlloca(type);
    a->setAlignment(llvm::Align(64));
    return a;
  };
  llvm::Type* i64s = ir.int_like(x.v);
  llvm::Value* in = slot(x.v->getType());
  llvm::Value* high = slot(x.v->getType());
  llvm::Value* low = slot(x.v->getType());
  llvm::Value* q = slot(i64s);
  b.CreateStore(x.v, in);
  llvm::Type* ptr = b.getPtrTy();
  auto callee =
      ir.module.getOrInsertFunction("collet_reduce_quarter", b.getVoidTy(), ptr, b.getInt64Ty(), ptr, ptr, ptr);
  b.CreateCall(callee, {in, b.getInt64(static_cast<uint64_t>(lanes)), high, low, q});
  llvm::Value* slow_r = b.CreateLoad(x.v->getType(), high);
  llvm::Value* slow_low = b.CreateLoad(x.v->getType(), low);
  llvm::Value* slow_q = b.CreateLoad(i64s, q);
  b.CreateBr(after);
  b.SetInsertPoint(after);
  auto join = [&](llvm::Value* fast, llvm::Value* other) {
    llvm::PHINode* phi = b.CreatePHI(fast->getType(), 2);
    phi->addIncoming(fast, before);
    phi->addIncoming(other, slow);
    return phi;
  };
  return {{ir, join(t.v, slow_r)}, {ir, join(t_low.v, slow_low)}, join(quarter, slow_q)};
}

F sin_kernel(F x, F low) {
  F z = x * x;
  F v = z * x;
  F r = polynomial(z, {8.33333333332248946124e-03, -1.98412698298579493134e-04, 2.75573137070700676789e-06,
                       -2.50507602534068634195e-08, 1.58969099521155010221e-10});
  return x - ((z * (0.5 * low - v * r) - low) - v * -1.66666666666666324348e-01);
}

F cos_kernel(F x, F low) {
  F z = x * x;
  F r = z * polynomial(z, {4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
                           -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11});
  F half = 0.5 * z;
  F w = 1.0 - half;
  return w + (((1.0 - w) - half) + (z * r - x * low));
}

/// Of an f64: sine where `shift` is 0, cosine where it is 1.
F turn(const Reduced& q, F s, F c, uint64_t shift) {
  Ir& ir = *s.ir;
  auto& b = ir.b;
  llvm::Value* n = b.CreateAdd(q.quarter, ki(s, shift));
  llvm::Value* odd = b.CreateICmpNE(b.CreateAnd(n, ki(s, 1)), ki(s, 0));
  llvm::Value* sign = b.CreateShl(b.CreateAnd(n, ki(s, 2)), ki(s, 62));
  F y = select(odd, c, s);
  return from_bits(y, b.CreateXor(bits(y), sign));
}

/// In f64, good enough to be rounded to f32.
F sin_short(F x) {
  F z = x * x;
  return fma(x * z,
             polynomial(z, {-1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
                            2.7525562e-06}),
             x);
}

F cos_short(F x) {
  F z = x * x;
  return polynomial(z, {1.0, -0.5, 4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
                        -2.7300892e-07});
}

F finite_only(F x, F y) {
  return select(abs(x) == kInfinity, kNan, select(is_nan(x), x, y));
}

F trig(F x, int which) {
  const bool f64 = is_f64(x);
  F wide = f64 ? x : widen(x);
  Reduced q = reduce_quarter(wide);
  F s = f64 ? sin_kernel(q.r, q.r_low) : sin_short(q.r);
  F c = f64 ? cos_kernel(q.r, q.r_low) : cos_short(q.r);
  F sine = turn(q, s, c, 0);
  F cosine = turn(q, s, c, 1);
  F y = which == 0 ? sine : which == 1 ? cosine : sine / cosine;
  if (which != 1) y = select(wide == 0.0, wide, y);
  y = finite_only(wide, y);
  return f64 ? y : narrow(y);
}

/// (asin(x) - x) / x for x^2 = z, z <= 1/4.
F asin_tail(F z) {
  F p = z * polynomial(z, {1.66666666666666657415e-01, -3.25565818622400915405e-01, 2.01212532134862925881e-01,
                           -4.00555345006794114027e-02, 7.91534994289814532176e-04, 3.47933107596021167570e-05});
  F q = polynomial(z, {1.0, -2.40339491173441421878e+00, 2.02094576023350569471e+00, -6.88283971605453293030e-01,
                       7.70381505559019352791e-02});
  return p / q;
}

F asin_of(F x, bool cosine) {
  F a = abs(x);
  llvm::Value* small = a < 0.5;
  F z = select(small, x * x, 0.5 * (1.0 - a));
  F s = select(small, a, root(z));
  F w = s * asin_tail(z);  // asin(s) = s + w
  if (!cosine) {
    F outer = kHalfPi - (2.0 * (s + w) - kHalfPiLow);
    return copysign(select(small, s + w, outer), x);
  }
  F signed_small = copysign(s, x);
  F inner = kHalfPi - (signed_small - (kHalfPiLow - copysign(w, x)));
  F near_one = 2.0 * (s + w);
  F near_minus_one = kPi - (2.0 * (s + w) - kPiLow);
  return select(small, inner, select(x > 0.0, near_one, near_minus_one));
}

F atan2_of(F y, F x) {
  F ax = abs(x);
  F ay = abs(y);
  llvm::Value* steep = ay > ax;
  F low = select(steep, ax, ay);
  F high = select(steep, ay, ax);
  // Past tan(pi / 8) the angle is measured from pi / 4.
  llvm::Value* wide = low > high * 0.41421356237309503;
  llvm::Value* huge = high > 1e300;
  F factor = select(huge, 1e-10, high.k(1.0));
  low = low * factor;
  high = high * factor;
  F t = select(wide, low - high, low) / select(wide, low + high, high);
  t = select(high == 0.0, 0.0, t);
  Ir& ir = *x.ir;
  llvm::Value* both_infinite = ir.b.CreateAnd(ax == kInfinity, ay == kInfinity);
  llvm::Value* infinite = high == kInfinity;
  t = select(infinite, 0.0, t);
  F base = select(wide, 0.78539816339744827900, t.k(0.0));
  F base_low = select(wide, 3.06161699786838301793e-17, t.k(0.0));
  base = select(both_infinite, 0.78539816339744827900, select(infinite, 0.0, base));
  F z = t * t;
  F p = z * polynomial(z, {3.33333333333329318027e-01, -1.99999999998764832476e-01, 1.42857142725034663711e-01,
                           -1.11111104054623557880e-01, 9.09088713343650656196e-02, -7.69187620504482999495e-02,
                           6.66107313738753120669e-02, -5.83357013379057348645e-02, 4.97687799461593236017e-02,
                           -3.65315727442169155270e-02, 1.62858201153657823623e-02});
  F tail = base_low - t * p;
  F angle = base + (t + tail);
  angle = select(steep, kHalfPi - (angle - kHalfPiLow), angle);
  llvm::Value* left = ir.b.CreateICmpSLT(bits(x), ki(x, 0));
  angle = select(left, kPi - (angle - kPiLow), angle);
  angle = copysign(angle, y);
  return select(ir.b.CreateOr(is_nan(x), is_nan(y)), kNan, angle);
}

}  // namespace

llvm::Value* sin(Ir& ir, llvm::Value* x) {
  return trig({ir, x}, 0).v;
}
llvm::Value* cos(Ir& ir, llvm::Value* x) {
  return trig({ir, x}, 1).v;
}
llvm::Value* tan(Ir& ir, llvm::Value* x) {
  return trig({ir, x}, 2).v;
}

void sincos(Ir& ir, llvm::Value* x, llvm::Value*& sine, llvm::Value*& cosine) {
  sine = sin(ir, x);
  cosine = cos(ir, x);
}

llvm::Value* asin(Ir& ir, llvm::Value* x) {
  F v(ir, x);
  return is_f64(v) ? asin_of(v, false).v : narrow(asin_of(widen(v), false)).v;
}

llvm::Value* acos(Ir& ir, llvm::Value* x) {
  F v(ir, x);
  return is_f64(v) ? asin_of(v, true).v : narrow(asin_of(widen(v), true)).v;
}

llvm::Value* atan2(Ir& ir, llvm::Value* y, llvm::Value* x) {
  F a(ir, y);
  F c(ir, x);
  return is_f64(a) ? atan2_of(a, c).v : narrow(atan2_of(widen(a), widen(c))).v;
}

}  // namespace collet::codegen::math
