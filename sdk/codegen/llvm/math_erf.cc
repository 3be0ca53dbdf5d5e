// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/math.h"
#include "sdk/codegen/llvm/math_notation.h"

namespace collet::codegen::math {
namespace {

/// Rational approximations of erf on four intervals; beyond 6 it is 1.
F erf64(F x) {
  Ir& ir = *x.ir;
  F a = abs(x);
  F z = x * x;
  // |x| < 0.84375: x + x P(x^2) / Q(x^2)
  F p0 = polynomial(z, {1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02,
                        -5.77027029648944159157e-03, -2.37630166566501626084e-05});
  F q0 = polynomial(z, {1.0, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03,
                        1.32494738004321644526e-04, -3.96022827877536812320e-06});
  F near = fma(a, p0 / q0, a);
  // |x| < 1.25: c + P(|x| - 1) / Q(|x| - 1)
  F s = a - 1.0;
  F p1 = polynomial(s, {-2.36211856075265944077e-03, 4.14856118683748331666e-01, -3.72207876035701323847e-01,
                        3.18346619901161753674e-01, -1.10894694282396677476e-01, 3.54783043256182359371e-02,
                        -2.16637559486879084300e-03});
  F q1 = polynomial(s, {1.0, 1.06420880400844228286e-01, 5.40397917702171048937e-01, 7.18286544141962662868e-02,
                        1.26171219808761642112e-01, 1.36370839120290507362e-02, 1.19844998467991074170e-02});
  F middle = 8.45062911510467529297e-01 + p1 / q1;
  // beyond: 1 - exp(-x^2 - 0.5625 + R(1/x^2) / S(1/x^2)) / |x|
  F w = at_least(at_most(a, 6.0), 1.25);
  F t = 1.0 / (w * w);
  llvm::Value* far = w >= 2.857142857142857;
  F r2 = polynomial(t, {-9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e+01,
                        -6.23753324503260060396e+01, -1.62396669462573470355e+02, -1.84605092906711035994e+02,
                        -8.12874355063065934246e+01, -9.81432934416914548592e+00});
  F s2 = polynomial(t, {1.0, 1.96512716674392571292e+01, 1.37657754143519042600e+02, 4.34565877475229228821e+02,
                        6.45387271733267880336e+02, 4.29008140027567833386e+02, 1.08635005541779435134e+02,
                        6.57024977031928170135e+00, -6.04244152148580987438e-02});
  F r3 = polynomial(t, {-9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e+01,
                        -1.60636384855821916062e+02, -6.37566443368389627722e+02, -1.02509513161107724954e+03,
                        -4.83519191608651397019e+02});
  F s3 = polynomial(t, {1.0, 3.03380607434824582924e+01, 3.25792512996573918826e+02, 1.53672958608443695994e+03,
                        3.19985821950859553908e+03, 2.55305040643316442583e+03, 4.74528541206955367215e+02,
                        -2.24409524465858183362e+01});
  F ratio = select(far, r3, r2) / select(far, s3, s2);
  // x^2 as a sum whose first part is exact in f32's width.
  F head = from_bits(w, ir.b.CreateAnd(bits(w), ki(w, 0xffffffff00000000ULL)));
  F e = F(ir, exp(ir, (-head * head - 0.5625).v)) * F(ir, exp(ir, ((head - w) * (head + w) + ratio).v));
  F tail = 1.0 - e / w;
  tail = select(a >= 6.0, 1.0, tail);
  F y = select(a < 0.84375, near, select(a < 1.25, middle, tail));
  return select(is_nan(x), x, copysign(y, x));
}

}  // namespace

llvm::Value* erf(Ir& ir, llvm::Value* x) {
  F v(ir, x);
  return is_f64(v) ? erf64(v).v : narrow(erf64(widen(v))).v;
}

/// Long division in binary, by a function: exact for every pair.
llvm::Value* fmod(Ir& ir, llvm::Value* x, llvm::Value* y) {
  return ir.b.CreateFRem(x, y);
}

}  // namespace collet::codegen::math
