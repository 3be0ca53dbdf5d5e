// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "hlo/passes/expand/arithmetic.h"

namespace collet::hlo {
namespace {

using elementary::Quarter;
using elementary::Sum;

// The bits of 2 / pi after the binary point, 32 in each word.
constexpr uint32_t kTwoOverPi[] = {0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB,
                                   0xDEBBC561, 0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E,
                                   0xE88235F5, 0x2EBB4484, 0xE99C7026, 0xB45F7E41, 0x3991D639, 0x835339F4, 0x9C845F8B,
                                   0xBDF9283B, 0x1FF897FF, 0xDE05980F, 0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7,
                                   0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B, 0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1,
                                   0x1F8D5D08, 0x56033046, 0xFC7B6BAB, 0xF0CFBC20, 0x9AF4361D};
constexpr int kWords = static_cast<int>(std::size(kTwoOverPi));

// Payne and Hanek's argument reduction: computes m 2^e (2/pi) modulo 4. Only a few words of 2/pi contribute to it.
class LargeReduction {
 public:
  explicit LargeReduction(Real x) : x_(x), b_(*x.b), f_(b_, x.type()), f64_(x.wide()) {}

  Quarter<Real> run() {
    const InstrId bits = b_.convert(f_.bits(x_.id), Type::U64);
    const int mantissa = f_.format.mantissa_bits;
    const InstrId significand =
        b_.or_(b_.and_(bits, number(bits, f_.mantissa_mask())), number(bits, f_.mantissa_mask() + 1));
    const InstrId exponent = b_.sub(b_.shr(bits, mantissa), number(bits, f_.format.bias + mantissa));
    // The position of the first bit of 2/pi that contributes, counted from the beginning of the table, which has `lead`
    // zero words before the binary point.
    const int lead = 2;
    const InstrId first = b_.add(exponent, number(bits, 32 * lead - 2));
    const InstrId word = b_.shr(first, 5), shift = b_.and_(first, number(first, 31));
    const int count = f64_ ? 6 : 3;
    std::vector<InstrId> window;  // `count` words, most significant first
    InstrId next = table(word, lead, 0);
    for (int i = 0; i < count; ++i) {
      const InstrId high = next;
      next = table(word, lead, i + 1);
      // 32 bits of the two words, from bit `shift` on.
      const InstrId both = b_.or_(b_.shl(high, 32), next);
      window.push_back(b_.and_(b_.binary(Op::SHIFT_RIGHT_LOGICAL, both, b_.sub(number(shift, 32), shift)),
                               number(shift, 0xFFFFFFFF)));
    }
    // Computes significand * window modulo 2^(32 count), word by word.
    std::vector<InstrId> product(window.size());
    const InstrId low = b_.and_(significand, number(significand, 0xFFFFFFFF)), high = b_.shr(significand, 32);
    InstrId carry = number(bits, 0);
    for (size_t i = window.size(); i-- > 0;) {
      InstrId sum = b_.add(b_.mul(low, window[i]), b_.and_(carry, number(bits, 0xFFFFFFFF)));
      InstrId up = b_.shr(carry, 32);
      if (f64_ && i + 1 < window.size()) {
        // The product of `high`, which has 21 bits, and the word before cannot overflow.
        const InstrId part = b_.mul(high, window[i + 1]);
        const InstrId part_low = b_.and_(part, number(bits, 0xFFFFFFFF));
        const InstrId sum_low = b_.add(b_.and_(sum, number(bits, 0xFFFFFFFF)), part_low);
        up = b_.add(b_.add(up, b_.shr(sum, 32)), b_.add(b_.shr(part, 32), b_.shr(sum_low, 32)));
        sum = b_.and_(sum_low, number(bits, 0xFFFFFFFF));
        carry = up;
        product[i] = sum;
        continue;
      }
      product[i] = b_.and_(sum, number(bits, 0xFFFFFFFF));
      carry = b_.add(up, b_.shr(sum, 32));
    }
    const InstrId top = b_.or_(b_.shl(product[0], 32), product[1]);
    InstrId quarter = b_.shr(top, 62);
    // The fraction of a quarter turn, rounded to the nearest quarter: in [-1/2, 1/2).
    const InstrId second = f64_ ? b_.or_(b_.shl(product[2], 32), product[3]) : b_.shl(product[2], 32);
    const InstrId fraction = b_.or_(b_.shl(top, 2), b_.shr(second, 62)), rest = b_.shl(second, 2);
    const InstrId negative = b_.compare(b_.bitcast_convert(fraction, Type::S64), Direction::LT,
                                        b_.bitcast_convert(number(bits, 0), Type::S64));
    quarter = b_.add(quarter, b_.convert(negative, Type::U64));
    const InstrId size = b_.select(negative, b_.not_(fraction), fraction);
    const InstrId size_rest = b_.select(negative, b_.not_(rest), rest);
    const Real head = real(b_.and_(size, number(bits, f64_ ? ~int64_t{0x7FF} : ~int64_t{0xFFFFFFFFFF})));
    const Real middle = real(b_.and_(size, number(bits, f64_ ? 0x7FF : 0xFFFFFFFFFF)));
    const Real tail = middle * 0x1p-64 + real(size_rest) * (f64_ ? 0x1p-128 : 0x1p-126 * 0.25);
    // Multiplies the fraction by pi / 2.
    const Real value = head * 0x1p-64;
    const double half_pi = f64_ ? 1.5707963267948966 : static_cast<double>(1.57079637f);
    const double half_pi_low = f64_ ? 6.123233995736766e-17 : 1.57079632679489662 - static_cast<double>(1.57079637f);
    const Sum<Real> p = elementary::two_product(value, x_.like(half_pi));
    const Sum<Real> r = elementary::fast_two_sum(p.high, p.low + (value * half_pi_low + tail * half_pi));
    const BoolArray turn = {&b_, negative};
    return {select(turn, -r.high, r.high),
            select(turn, -r.low, r.low),
            {&b_, b_.convert(quarter, bits_type(x_.type(), true))}};
  }

 private:
  InstrId number(InstrId like, int64_t v) const { return b_.like_int(like, v); }
  Real real(InstrId integer) const { return x_.of(b_.convert(integer, x_.type())); }
  // Returns word number `word + i` of 2/pi, counted with `lead` zero words before it. It is selected by a chain of
  // selects, because the index differs between elements.
  InstrId table(InstrId word, int lead, int i) const {
    InstrId out = number(word, 0);
    const int largest = f64_ ? kWords : 8;
    for (int k = 0; k < largest; ++k)
      out = b_.select(b_.compare(word, Direction::EQ, number(word, k + lead - i)), number(word, kTwoOverPi[k]), out);
    return out;
  }

  Real x_;
  Builder& b_;
  FloatBits f_;
  bool f64_;
};

}  // namespace

Quarter<Real> reduce_quarter(Real x) {
  const double limit = elementary::small_limit(x);
  const Real a = magnitude(x);
  const Quarter<Real> small = elementary::reduce_small(at_least(at_most(x, limit), -limit));
  Quarter<Real> large = LargeReduction(select(a < kInfinity, a, x.like(1))).run();
  const BoolArray negative = x < 0;
  large = {select(negative, -large.r, large.r), select(negative, -large.low, large.low),
           select(negative, large.quarter.like(0) - large.quarter, large.quarter)};
  const BoolArray near = a <= limit;
  return {select(near, small.r, large.r), select(near, small.low, large.low),
          select(near, small.quarter, large.quarter)};
}

Real square_root(Real x) {
  Builder& b = *x.b;
  const bool f64 = x.wide();
  const FloatBits f(b, x.type());
  // x = 4^e m with 1 <= m < 4.
  const BoolArray tiny = x < (f64 ? 0x1p-1022 : 0x1p-126);
  const Real lifted = select(tiny, x * (f64 ? 0x1p54 : 0x1p24), x);
  const InstrId bits = f.signed_bits(lifted.id);
  const auto number = [&](int64_t v) { return b.like_int(bits, v); };
  const InstrId exponent = b.sub(b.shr(bits, f.format.mantissa_bits), number(f.format.bias));
  const InstrId odd = b.and_(exponent, number(1));
  const InstrId field = b.shl(b.add(odd, number(f.format.bias)), f.format.mantissa_bits);
  const Real m = x.of(f.value(b.or_(b.and_(bits, number(f.mantissa_mask())), field)));
  const InstrId half = b.binary(Op::SHIFT_RIGHT_ARITHMETIC, b.sub(exponent, odd), number(1));
  // A linear approximation of the root is the start value of Newton's iteration, whose result is within one ulp.
  Real y = m * 0.3333 + 0.7;
  for (int i = 0; i < (f64 ? 5 : 4); ++i) y = (y + m / y) * 0.5;
  // The remainder m - y^2 is exact; it tells on which side of the midpoints between neighbouring floats the root is.
  const Sum<Real> square = elementary::two_product(y, y);
  const Real rest = (m - square.high) - square.low;
  const double ulp = f64 ? 0x1p-52 : 0x1p-23;
  const Real step = y * ulp;
  y = select(rest > step, y + ulp, select(rest <= -step, y - ulp, y));
  const Real down = select(tiny, x.like(f64 ? 0x1p-27 : 0x1p-12), x.like(1));
  const Real root = y * x.of(f.power_of_two(half)) * down;
  const Real positive = select(x == kInfinity || x == 0 || is_nan(x), x, root);
  return select(x < 0, x.like(kNaN), positive);
}

}  // namespace collet::hlo
