// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "hlo/passes/expand/math.h"

namespace collet::hlo {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

bool wide(Real x) {
  return x.type() == Type::F64;
}

// (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2.
constexpr double kExp32[] = {0.500000008410019122,   0.166666668302451582,   0.0416662506576570879,
                             0.00833327047601589234, 0.00139473876322791808, 0.000199154017865253426};
constexpr double kExp64[] = {0.5,
                             0.166666666666666667,
                             0.0416666666666667178,
                             0.00833333333333334061,
                             0.00138888888888618931,
                             0.000198412698412391798,
                             0.0000248015873671586209,
                             2.75573192865178828e-6,
                             2.75572387127451729e-7,
                             2.50520417061221284e-8,
                             2.09253748303601046e-9,
                             1.60948530518053979e-10};
// R(z) / z with log((1 + s) / (1 - s)) = 2 s + s R(s^2).
constexpr double kLog32[] = {0.666666656472190829, 0.400003347090347447, 0.285373396707957426, 0.235815880965213041};
constexpr double kLog64[] = {0.66666666666666661,  0.400000000000062634, 0.285714285690807628, 0.222222226475574736,
                             0.181817756050884637, 0.153870933887738851, 0.132500589162971481, 0.132518673160795569};
// (R(z) / z - 2/3) / z
constexpr double kLogTail32[] = {0.3999999817461559, 0.285718739650849195, 0.221850047435047003, 0.194680113671598382};
constexpr double kLogTail64[] = {0.399999999999999774, 0.285714285714451474, 0.222222222175292425,
                                 0.181818188710652753, 0.153845568267793525, 0.133363189162003471,
                                 0.116747912547640499, 0.119892204216709727};

// ln 2 in two parts, the first short enough that its product with an exponent is exact.
struct Ln2 {
  double high, low;
};
Ln2 ln2(Real x) {
  return wide(x) ? Ln2{0.69314718036912381649, 1.9082149292705878161e-10}
                 : Ln2{0.693115234375, 0.000031946184945309417232};
}

// The nearest whole number to x, for |x| < 2^(mantissa - 2), and as an integer.
struct Whole {
  Real value;
  InstrId integer;
};
Whole nearest(Real x) {
  const double magic = wide(x) ? 0x1.8p52 : 0x1.8p23;
  const Real value = (x + magic) - magic;
  return {value, x.b->convert(value.id, bits_type(x.type(), true))};
}

// x = k ln 2 + r, |r| <= ln(2) / 2; x must be finite and of moderate size.
struct Reduced {
  Real r, k;
  InstrId exponent;
};
Reduced reduce(Real x) {
  const Whole k = nearest(x * 1.4426950408889634);
  const Real r = (x - k.value * ln2(x).high) - k.value * ln2(x).low;
  return {r, k.value, k.integer};
}
// exp(r) - 1
Real small_expm1(Real r) {
  return r + (r * r) * polynomial(r, wide(r) ? std::span<const double>(kExp64) : kExp32);
}
// x * 2^k in two steps, so that it may end in subnormals or at the very top.
Real scale(Real x, InstrId k) {
  Builder& b = *x.b;
  const FloatBits f(b, x.type());
  const InstrId first = b.binary(Op::SHIFT_RIGHT_ARITHMETIC, k, b.like_int(k, 1)), second = b.sub(k, first);
  return x * x.of(f.power_of_two(first)) * x.of(f.power_of_two(second));
}

Real exp_scaled(Real x, int64_t offset) {
  Builder& b = *x.b;
  // Beyond these the result is infinite or zero; NaN passes through both.
  const Real inside = minimum(maximum(x, wide(x) ? -746 : -105), wide(x) ? 711 : 90);
  const Reduced d = reduce(inside);
  const InstrId k = b.add(d.exponent, b.like_int(d.exponent, offset));
  return scale(small_expm1(d.r) + 1, k);
}

}  // namespace

Real exp_of(Real x) {
  return exp_scaled(x, 0);
}
Real half_exp_of(Real x) {
  return exp_scaled(x, -1);
}

Real expm1_of(Real x) {
  const FloatBits f(*x.b, x.type());
  // 2^k (expm1(r) + (1 - 2^-k)), where 2^k - 1 is exact; far down it is -1, far up exp(x).
  const double top = wide(x) ? 36 : 16, bottom = wide(x) ? -40 : -20;
  const Reduced d = reduce(minimum(maximum(x, bottom), top));
  const Real power = x.of(f.power_of_two(d.exponent));
  const Real near = power * small_expm1(d.r) + (power - 1);
  const Real all = select(x > top, exp_of(x), near);
  return select(equal(x, 0), x, all);  // -0
}

namespace {

// x = 2^k m, sqrt(1/2) <= m < sqrt(2), for finite x > 0.
struct Parts {
  Real m, k;
};
Parts take_apart(Real x) {
  Builder& b = *x.b;
  const FloatBits f(b, x.type());
  const bool f64 = wide(x);
  const Truth tiny = x < (f64 ? 0x1p-1022 : 0x1p-126);
  const Real lifted = select(tiny, x * (f64 ? 0x1p54 : 0x1p25), x);
  const InstrId bits = f.signed_bits(lifted.id);
  const auto number = [&](int64_t v) { return b.like_int(bits, v); };
  const int64_t one = f64 ? 0x3FF0000000000000 : 0x3F800000, root = f64 ? 0x3FE6A09E667F3BCD : 0x3F3504F3;
  const InstrId shifted = b.add(bits, number(one - root));
  const InstrId exponent = b.sub(b.shr(shifted, f.format.mantissa_bits), number(f.format.bias));
  const InstrId mantissa = b.add(b.and_(shifted, number(f.mantissa_mask())), number(root));
  const Real k = x.of(b.convert(exponent, x.type()));
  return {x.of(f.value(mantissa)), select(tiny, k - (f64 ? 54 : 25), k)};
}

// log of 2^k (1 + f), and `extra` small.
Real log_parts(Real f, Real k, Real extra) {
  const Real s = f / (f + 2), z = s * s, half = f * f * 0.5;
  const Real r = z * polynomial(z, wide(f) ? std::span<const double>(kLog64) : kLog32);
  return k * ln2(f).high - ((half - (s * (half + r) + (k * ln2(f).low + extra))) - f);
}

Real log_specials(Real result, Real x, double pole) {
  const Real at_pole = select(equal(x, pole), -kInfinity, result);
  const Real below = select(x < pole, kNaN, at_pole);
  return select(is_nan(x) || equal(x, kInfinity), x, below);
}

}  // namespace

Real log_of(Real x) {
  const Parts p = take_apart(x);
  return log_specials(log_parts(p.m - 1, p.k, x.like(0)), x, 0);
}

Real log1p_of(Real x) {
  const Real u = x + 1;
  const Parts p = take_apart(u);
  // What adding one lost, relative to u; where u needs no exponent, x itself is f.
  const Real lost = select(p.k >= 0, (x.like(1) - (u - x)) / u, (x - (u - 1)) / u);
  const Truth near = equal(p.k, 0);
  const Real result = log_parts(select(near, x, p.m - 1), p.k, select(near, 0, lost));
  return select(equal(x, 0), x, log_specials(result, x, -1));
}

Real sqrt_of(Real x) {
  Builder& b = *x.b;
  const bool f64 = wide(x);
  const FloatBits f(b, x.type());
  // x = 4^e m with 1 <= m < 4.
  const Truth tiny = x < (f64 ? 0x1p-1022 : 0x1p-126);
  const Real lifted = select(tiny, x * (f64 ? 0x1p54 : 0x1p24), x);
  const InstrId bits = f.signed_bits(lifted.id);
  const auto number = [&](int64_t v) { return b.like_int(bits, v); };
  const InstrId exponent = b.sub(b.shr(bits, f.format.mantissa_bits), number(f.format.bias));
  const InstrId odd = b.and_(exponent, number(1));
  const InstrId field = b.shl(b.add(odd, number(f.format.bias)), f.format.mantissa_bits);
  const Real m = x.of(f.value(b.or_(b.and_(bits, number(f.mantissa_mask())), field)));
  const InstrId half = b.binary(Op::SHIFT_RIGHT_ARITHMETIC, b.sub(exponent, odd), number(1));
  // A line close to the root, then Newton: within an ulp.
  Real y = m * 0.3333 + 0.7;
  for (int i = 0; i < (f64 ? 5 : 4); ++i) y = (y + m / y) * 0.5;
  // The rest is exact, and says on which side of the midpoints the root lies.
  const Double square = two_product(y, y);
  const Real rest = (m - square.high) - square.low;
  const double ulp = f64 ? 0x1p-52 : 0x1p-23;
  const Real step = y * ulp;
  y = select(rest > step, y + ulp, select(compare(rest, Direction::LE, -step), y - ulp, y));
  const Real down = select(tiny, x.like(f64 ? 0x1p-27 : 0x1p-12), x.like(1));
  const Real root = y * x.of(f.power_of_two(half)) * down;
  const Real positive = select(equal(x, kInfinity) || equal(x, 0) || is_nan(x), x, root);
  return select(x < 0, kNaN, positive);
}

Real cbrt_of(Real x) {
  Builder& b = *x.b;
  const bool f64 = wide(x);
  const FloatBits f(b, x.type());
  const Real size = magnitude(x);
  const Truth tiny = size < (f64 ? 0x1p-1022 : 0x1p-126);
  const Real a = select(tiny, size * (f64 ? 0x1p54 : 0x1p24), size);
  // A third of the exponent, and of the mantissa as far as a line goes.
  const InstrId bits = f.signed_bits(a.id);
  const InstrId third = b.div(bits, b.like_int(bits, 3));
  const int64_t offset = f64 ? 0x2A9F7893782DA1CE : 0x2A5137A0;
  Real t = a.of(f.value(b.add(third, b.like_int(third, offset))));
  const auto halley = [&](Real guess) {
    const Real r = a / (guess * guess);
    return guess + guess * ((r - guess) / (guess + guess + r));
  };
  for (int i = 0; i < (f64 ? 2 : 1); ++i) t = halley(t);
  // With half the bits its square is exact, and one more step leaves only the last rounding.
  t = halley(split(t).high);
  const Real result = with_sign_of(select(tiny, t * (f64 ? 0x1p-18 : 0x1p-8), t), x);
  const Truth itself = equal(x, 0) || equal(size, kInfinity) || is_nan(x);
  return select(itself, x, result);
}

namespace {

// log(x) to half again the precision, for finite x > 0.
Double long_log(Real x) {
  const Parts p = take_apart(x);
  const bool f64 = wide(x);
  const Real f = p.m - 1;
  // s = f / (2 + f), twice as long.
  const Double below = fast_two_sum(x.like(2), f);
  const Real s = f / below.high;
  const Double back = two_product(s, below.high);
  const Real s_low = (((f - back.high) - back.low) - s * below.low) / below.high;
  const Double square = two_product(s, s);
  const Real z = square.high, z_low = square.low + s * s_low * 2;
  // s (2 + z (2/3 + z tail))
  const Real tail = z * polynomial(z, f64 ? std::span<const double>(kLogTail64) : kLogTail32);
  const double third = f64 ? 0.66666666666666663 : static_cast<double>(0.66666667f);
  const double third_low = 2.0 / 3.0 - third;
  Double c = fast_two_sum(x.like(third), tail);
  c.low = c.low + (f64 ? 3.7007434154171886e-17 : third_low);
  const Double zc = two_product(z, c.high);
  const Double q = fast_two_sum(zc.high, zc.low + (z * c.low + z_low * c.high));
  const Double sq = two_product(s, q.high);
  const Real sq_low = sq.low + (s * q.low + s_low * q.high);
  // k ln 2 + 2 s + s q; k * ln2.high is exact.
  const Double sum = two_sum(p.k * ln2(x).high, s * 2);
  const Double all = two_sum(sum.high, sq.high);
  const Real low = (all.low + sum.low) + (sq_low + (s_low * 2 + p.k * ln2(x).low));
  return fast_two_sum(all.high, low);
}

}  // namespace

Real power_of(Real x, Real y) {
  Builder& b = *x.b;
  const bool f64 = wide(x);
  const FloatBits f(b, x.type());
  const Real size = magnitude(x);
  const Double l = long_log(size);
  // y log|x|; y is cut to where the result has long been 0, 1 or infinite, so that products stay finite.
  const Real exponent = minimum(maximum(y, f64 ? -0x1p80 : -0x1p40), f64 ? 0x1p80 : 0x1p40);
  const Double product = two_product(exponent, l.high);
  const Double e = fast_two_sum(product.high, product.low + exponent * l.low);
  const Real inside = minimum(maximum(e.high, f64 ? -760 : -120), f64 ? 720 : 100);
  const Truth cut = compare(inside, Direction::NE, e.high);
  const Reduced d = reduce(inside);
  const Real tail = select(cut, 0, e.low);
  const Real grown = small_expm1(d.r);
  const Real result = scale(grown + (tail + tail * grown) + 1, d.exponent);

  // Whole and odd exponents.
  const double whole_from = f64 ? 0x1p53 : 0x1p24;
  const Real y_size = magnitude(y);
  const auto floor = [&](Real v) { return v.of(b.unary(Op::FLOOR, v.id)); };
  const Truth whole = y_size >= whole_from || compare(floor(y), Direction::EQ, y);
  const Real halved = y * 0.5;
  const Truth odd = whole && y_size < whole_from && compare(floor(halved), Direction::NE, halved);
  const Truth negative = {&b, b.compare(f.signed_bits(x.id), Direction::LT, b.like_int(f.signed_bits(x.id), 0))};
  const Truth flips = negative && odd;
  const auto signed_if = [&](Real v) { return select(flips, -v, v); };

  Real out = signed_if(result);
  out = select(x < 0 && !whole, kNaN, out);
  const Truth grows = y > 0;
  // Zero and infinity as base.
  out = select(equal(x, 0), signed_if(select(grows, x.like(0), x.like(kInfinity))), out);
  out = select(equal(size, kInfinity), signed_if(select(grows, x.like(kInfinity), x.like(0))), out);
  // Infinity as exponent.
  const Truth large = compare(size, Direction::GT, x.like(1));
  const Real at_infinity =
      select(equal(size, 1), 1, select(Truth{&b, b.compare(large.id, Direction::EQ, grows.id)}, kInfinity, x.like(0)));
  out = select(equal(y_size, kInfinity), at_infinity, out);
  out = select(is_nan(x) || is_nan(y), kNaN, out);
  return select(equal(x, 1) || equal(y, 0), 1, out);
}

namespace {

constexpr double kErf32[] = {1.1283791659125353,      -0.376126271274281121,  0.112836000783227161,
                             -0.0268544404641477049,  0.00518952745209135006, -0.00080207716789678119,
                             0.0000788888888572817072};
constexpr double kErf64[] = {1.12837916709551257,     -0.376126389031837524,    0.112837916709551204,
                             -0.0268661706451298675,  0.00522397762542360346,   -0.000854832702195556916,
                             0.000120553329037933065, -0.000014925647593949453, 1.64620459698696681e-6,
                             -1.63646494082378219e-7, 1.47924683469481918e-8,   -1.21649610242405086e-9,
                             8.7104394319938564e-11,  -4.2330903898170792e-12};
// erfc(x) exp(x^2) about 2.5 on [1, 4]; about 1.5, 2.75 and 4.75 on [1, 2], [2, 3.5] and [3.5, 6].
constexpr double kTail32[] = {0.210806333686086496,     -0.0743493851609759654,   0.0249295445458966971,
                              -0.00800012798822531572,  0.00252082730581896915,   -0.000649142265918282836,
                              0.000223497676372293974,  -0.000136423402860000474, -0.0000578800768822307804,
                              -0.0000280112631936909399};
constexpr double kTail64a[] = {0.321585416454317502,      -0.163622917732560068,    0.0761510398554774003,
                               -0.0329309052995624396,    0.0133773409530671772,    -0.00514595754799762242,
                               0.00188613487700086248,    -0.000661930066065113601, 0.000223309945134996611,
                               -0.0000726589272127812606, 0.0000228643012124593149, -6.97495039659740591e-6,
                               2.06705741437726538e-6,    -5.96277431035323231e-7,  1.67165262206980065e-7,
                               -4.54593927753910912e-8,   1.32186929973697795e-8,   -3.85854857009690466e-9};
constexpr double kTail64b[] = {0.193662096279066933,    -0.0632376375605694221,   0.0197585929880199096,
                               -0.00593433789894081595, 0.00171958185894253495,   -0.000482195096119709984,
                               0.000131182084676465806, -0.000034698211771215652, 8.939014179870207e-6,
                               -2.24972647195951688e-6, 5.53511612238543201e-7,   -1.27362742966159062e-7,
                               3.16774938556985432e-8,  -1.1429568025770215e-8};
constexpr double kTail64c[] = {0.116302707404342856,     -0.0235034450870346054,  0.00466134254401527976,
                               -0.000908090105875658356, 0.000173790189660930537, -0.0000332694146287832204,
                               5.26463872073591019e-6,   -1.87487593759385625e-6, -2.04111568350044252e-7,
                               -1.41126334287685023e-7};

}  // namespace

Real erf_of(Real x) {
  const Real a = magnitude(x), z = x * x;
  const Real small = x * polynomial(z, wide(x) ? std::span<const double>(kErf64) : kErf32);
  Real tail;
  if (wide(x)) {
    tail = select(a < 2, polynomial(a - 1.5, kTail64a),
                  select(a < 3.5, polynomial(a - 2.75, kTail64b), polynomial(a - 4.75, kTail64c)));
  } else {
    tail = polynomial(a - 2.5, kTail32);
  }
  const Real outer = 1.0 - exp_of(-z) * tail;
  const Real large = select(a >= (wide(x) ? 6 : 4), 1, outer);
  return select(a < 1, small, select(is_nan(x), x, with_sign_of(large, x)));
}

}  // namespace collet::hlo
