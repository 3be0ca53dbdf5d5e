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

// (sin x - x) / x^3 and (cos x - 1 + x^2 / 2) / x^4 in x^2, for |x| <= pi / 4; (atan x - x) / x^3 for |x| <= tan(pi / 8).
constexpr double kSin32[] = {-0.166666666396565154, 0.0083333291556026602, -0.000198392602112503972,
                             2.71759618093908482e-6};
constexpr double kSin64[] = {-0.166666666666666666,   0.00833333333333332149,  -0.000198412698412535978,
                             2.75573192134187548e-6,  -2.50521047084274585e-8, 1.60583404977706115e-10,
                             -7.57739155140757537e-13};
constexpr double kCos32[] = {0.0416666666192736644, -0.00138888834429892029, 0.000024799437513270708,
                             -2.72033934729302152e-7};
constexpr double kCos64[] = {0.0416666666666666666,   -0.00138888888888888723, 0.0000248015873015698631,
                             -2.75573192146715153e-7, 2.08767542070263937e-9,  -1.14702751657849043e-11,
                             4.73729115757319884e-14};
constexpr double kAtan32[] = {-0.33333332419654254, 0.199998962325634361,   -0.142817729765621101,
                              0.110416133974700398, -0.0845819893008736269, 0.0470501325126119707};
constexpr double kAtan64[] = {-0.33333333333333333,   0.199999999999998583,   -0.142857142856916554,
                              0.111111111092889165,   -0.0909090900422689539, 0.0769230503667117868,
                              -0.0666661153121407186, 0.058815538322629977,   -0.0525495443003648188,
                              0.0470215737508386963,  -0.0404259166066983473, 0.0293477571210025958,
                              -0.0127348779471846926};

// Bits of 2 / pi after the point, 32 a word.
constexpr uint32_t kTwoOverPi[] = {0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB,
                                   0xDEBBC561, 0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E,
                                   0xE88235F5, 0x2EBB4484, 0xE99C7026, 0xB45F7E41, 0x3991D639, 0x835339F4, 0x9C845F8B,
                                   0xBDF9283B, 0x1FF897FF, 0xDE05980F, 0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7,
                                   0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B, 0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1,
                                   0x1F8D5D08, 0x56033046, 0xFC7B6BAB, 0xF0CFBC20, 0x9AF4361D};
constexpr int kWords = static_cast<int>(std::size(kTwoOverPi));

// |x| = q pi/2 + r + low, |r| <= pi/4; q modulo 4.
struct Quarter {
  Real r, low;
  InstrId q;  // s32 or s64
};

// Cody and Waite: pi / 2 in parts whose products with q are exact.
Quarter reduce_small(Real x) {
  const bool f64 = wide(x);
  const double magic = f64 ? 0x1.8p52 : 0x1.8p23;
  const Real q = (x * 0.63661977236758134 + magic) - magic;
  const double c1 = f64 ? 1.5707963267341256142 : 1.57073974609375;
  const double c2 = f64 ? 6.0771005063039659766e-11 : 0.000056579709053039550781;
  const double c3 = f64 ? 2.0222662487959507324e-21 : 9.9209357968054044164e-10;
  const Double first = two_sum(x - q * c1, -(q * c2));
  const Double all = two_sum(first.high, first.low - q * c3);
  return {all.high, all.low, x.b->convert(q.id, bits_type(x.type(), true))};
}

// Payne and Hanek: m 2^e (2/pi) modulo 4, of which only some words of 2/pi matter.
class LargeReduction {
 public:
  explicit LargeReduction(Real x) : x_(x), b_(*x.b), f_(b_, x.type()), f64_(wide(x)) {}

  Quarter run() {
    const InstrId bits = b_.convert(f_.bits(x_.id), Type::U64);
    const int mantissa = f_.format.mantissa_bits;
    const InstrId significand =
        b_.or_(b_.and_(bits, number(bits, f_.mantissa_mask())), number(bits, f_.mantissa_mask() + 1));
    const InstrId exponent = b_.sub(b_.shr(bits, mantissa), number(bits, f_.format.bias + mantissa));
    // The first bit that matters, counted from `lead` zero words before the point.
    const int lead = 2;
    const InstrId first = b_.add(exponent, number(bits, 32 * lead - 2));
    const InstrId word = b_.shr(first, 5), shift = b_.and_(first, number(first, 31));
    const int count = f64_ ? 6 : 3;
    std::vector<InstrId> window;  // of `count` words, most significant first
    InstrId next = table(word, lead, 0);
    for (int i = 0; i < count; ++i) {
      const InstrId high = next;
      next = table(word, lead, i + 1);
      // 32 bits from `shift` on of the two words.
      const InstrId both = b_.or_(b_.shl(high, 32), next);
      window.push_back(b_.and_(b_.binary(Op::SHIFT_RIGHT_LOGICAL, both, b_.sub(number(shift, 32), shift)),
                               number(shift, 0xFFFFFFFF)));
    }
    // significand * window modulo 2^(32 count), word by word.
    std::vector<InstrId> product(window.size());
    const InstrId low = b_.and_(significand, number(significand, 0xFFFFFFFF)), high = b_.shr(significand, 32);
    InstrId carry = number(bits, 0);
    for (size_t i = window.size(); i-- > 0;) {
      InstrId sum = b_.add(b_.mul(low, window[i]), b_.and_(carry, number(bits, 0xFFFFFFFF)));
      InstrId up = b_.shr(carry, 32);
      if (f64_ && i + 1 < window.size()) {
        // high * the word before cannot overflow: high has 21 bits.
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
    // The fraction of a quarter, to the nearest: in [-1/2, 1/2).
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
    // times pi / 2
    const Real value = head * 0x1p-64;
    const double half_pi = f64_ ? 1.5707963267948966 : static_cast<double>(1.57079637f);
    const double half_pi_low = f64_ ? 6.123233995736766e-17 : 1.57079632679489662 - static_cast<double>(1.57079637f);
    const Double p = two_product(value, x_.like(half_pi));
    const Double r = fast_two_sum(p.high, p.low + (value * half_pi_low + tail * half_pi));
    const Truth turn = {&b_, negative};
    return {select(turn, -r.high, r.high), select(turn, -r.low, r.low),
            b_.convert(quarter, bits_type(x_.type(), true))};
  }

 private:
  InstrId number(InstrId like, int64_t v) const { return b_.like_int(like, v); }
  Real real(InstrId integer) const { return x_.of(b_.convert(integer, x_.type())); }
  // Word number `word + i` of 2/pi, `lead` zero words before it: a chain of selections.
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

Quarter reduce(Real x) {
  // Where Cody and Waite's products stay exact.
  const double limit = wide(x) ? 0x1p19 : 256;
  const Real a = magnitude(x);
  const Truth finite = a < kInfinity;
  const Quarter small = reduce_small(minimum(a, limit));
  const Quarter large = LargeReduction(select(finite, a, 1)).run();
  const Truth use = compare(a, Direction::LE, a.like(limit));
  return {select(use, small.r, large.r), select(use, small.low, large.low), x.b->select(use.id, small.q, large.q)};
}

Real sine_kernel(Real r, Real low) {
  const Real z = r * r;
  const Real s = z * polynomial(z, wide(r) ? std::span<const double>(kSin64) : kSin32);
  return r + (r * s + low * (1.0 - z * 0.5));
}
Real cosine_kernel(Real r, Real low) {
  const Real z = r * r, half = z * 0.5, w = 1.0 - half;
  const Real c = polynomial(z, wide(r) ? std::span<const double>(kCos64) : kCos32);
  return w + (((1.0 - w) - half) + (z * z * c - r * low));
}
Truth bit(Real like, InstrId q, int64_t mask) {
  Builder& b = *like.b;
  return {&b, b.compare(b.and_(q, b.like_int(q, mask)), Direction::NE, b.like_int(q, 0))};
}

Real circular(Real x, int64_t offset) {
  Builder& b = *x.b;
  Quarter d = reduce(x);
  d.q = b.add(d.q, b.like_int(d.q, offset));
  const Real value = select(bit(x, d.q, 1), cosine_kernel(d.r, d.low), sine_kernel(d.r, d.low));
  Real out = select(bit(x, d.q, 2), -value, value);
  if (offset == 0) {
    const FloatBits f(b, x.type());
    out = x.of(f.value(b.xor_(f.bits(out.id), f.masked(x.id, f.sign()))));  // odd
    out = select(equal(x, 0), x, out);
  }
  return select(magnitude(x) < kInfinity, out, kNaN);
}

}  // namespace

Real sine_of(Real x) {
  return circular(x, 0);
}
Real cosine_of(Real x) {
  return circular(x, 1);
}

Real tangent_of(Real x) {
  Builder& b = *x.b;
  const Quarter d = reduce(x);
  const Real s = sine_kernel(d.r, d.low), c = cosine_kernel(d.r, d.low);
  const Truth turned = bit(x, d.q, 1);
  const Real value = select(turned, -c, s) / select(turned, s, c);
  const FloatBits f(b, x.type());
  const Real out = x.of(f.value(b.xor_(f.bits(value.id), f.masked(x.id, f.sign()))));
  return select(equal(x, 0), x, select(magnitude(x) < kInfinity, out, kNaN));
}

Real atan2_of(Real y, Real x) {
  Builder& b = *x.b;
  const FloatBits f(b, x.type());
  const Real a = magnitude(y), c = magnitude(x);
  const Truth steep = a > c;
  const Real most = select(steep, a, c), least = select(steep, c, a);
  // Both infinite: as if both were one. Both zero: 0 / 1. Very large or small: the same ratio without over- or underflow.
  const Truth infinite = equal(least, kInfinity);
  const double big = wide(x) ? 0x1p1000 : 0x1p120, tiny = wide(x) ? 0x1p-900 : 0x1p-100;
  const Truth high = most > big, deep = most < tiny;
  const double down = wide(x) ? 0x1p-60 : 0x1p-24, up = wide(x) ? 0x1p120 : 0x1p48;
  const auto scaled = [&](Real v) { return select(high, v * down, select(deep, v * up, v)); };
  const Real num = select(infinite, 1, scaled(least));
  const Real den = select(infinite, 1, select(equal(most, 0), 1, select(equal(most, kInfinity), most, scaled(most))));
  // atan(t) = pi/4 + atan((t - 1) / (t + 1)) for t > tan(pi/8), both from numerator and denominator.
  const Truth far = num > den * 0.41421356237309503;
  const Real t = select(far, num - den, num) / select(far, num + den, den);
  const Real z = t * t;
  const Real s = z * polynomial(z, wide(x) ? std::span<const double>(kAtan64) : kAtan32);
  const Real small = t * s;
  // pi/4, pi/2 and pi in two parts.
  const double pi = wide(x) ? 3.141592653589793 : static_cast<double>(3.14159274f);
  const double pi_low = wide(x) ? 1.2246467991473532e-16 : 3.14159265358979323846 - static_cast<double>(3.14159274f);
  // The angle is base + sign * (t + small): gather the multiples of pi/4 first.
  const Real base = select(far, x.like(0.25), x.like(0));
  const Real folded = select(steep, 0.5 - base, base);
  const Truth left = {&b, b.compare(f.signed_bits(x.id), Direction::LT, b.like_int(f.signed_bits(x.id), 0))};
  const Real turns = select(left, 1.0 - folded, folded);
  const Truth minus = {&b, b.xor_(steep.id, left.id)};
  const auto oriented = [&](Real v) { return select(minus, -v, v); };
  const Double sum = fast_two_sum(turns * pi, oriented(t));
  const Real whole = sum.high + (sum.low + (turns * pi_low + oriented(small)));
  const Real angle = select(equal(turns, 0), t + small, whole);
  const Real out = with_sign_of(magnitude(angle), y);
  return select(is_nan(x) || is_nan(y), kNaN, out);
}

}  // namespace collet::hlo
