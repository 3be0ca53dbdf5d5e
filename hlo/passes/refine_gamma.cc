// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/refine_gamma.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <optional>
#include <span>
#include <utility>

#include "hlo/ops/lanczos.h"

namespace collet::hlo {
namespace {

/// Matches expressions of a module. A function returns the operand that the caller asked for, and None if the instruction has
/// another form.
class Reader {
 public:
  explicit Reader(const Module& module) : m_(module) {}

  bool is(InstrId id, Op op) const { return m_[id].op == op; }
  InstrId operand(InstrId id, size_t i) const { return m_[id].operand(i); }
  /// True if all elements are `value`, rounded to the element type, or differ from it by the error of another formula for it.
  bool is_constant(InstrId id, double value) const {
    const Literal* c = splat_value(m_, id);
    if (!c || !is_float(c->type())) return false;
    const double unit = c->type() == Type::F64 ? std::numeric_limits<double>::epsilon()
                                               : static_cast<double>(std::numeric_limits<float>::epsilon());
    return std::abs(c->as_double(0) - value) <= 4 * unit * std::abs(value);
  }
  /// Returns y of `op(value, y)`, or of `op(y, value)` where `op` commutes.
  InstrId beside(InstrId id, Op op, double value) const {
    if (!is(id, op)) return InstrId::None;
    if (is_constant(operand(id, 0), value)) return operand(id, 1);
    const bool commutes = op == Op::ADD || op == Op::MULTIPLY;
    return commutes && is_constant(operand(id, 1), value) ? operand(id, 0) : InstrId::None;
  }
  bool is_sum(InstrId id, InstrId x, double value) const { return beside(id, Op::ADD, value) == x; }
  /// Returns the operands of a sum, that of op `op` second.
  std::optional<std::pair<InstrId, InstrId>> sum_with(InstrId id, Op op) const {
    if (!is(id, Op::ADD)) return std::nullopt;
    const InstrId a = operand(id, 0), b = operand(id, 1);
    if (is(b, op)) return std::pair(a, b);
    if (is(a, op)) return std::pair(b, a);
    return std::nullopt;
  }

 private:
  const Module& m_;
};

/// Returns z of the sum of Lanczos' terms.
InstrId argument_of_terms(const Reader& r, InstrId id) {
  InstrId z = InstrId::None;
  for (size_t i = lanczos::kTerms.size(); i-- > 0;) {
    const auto parts = r.sum_with(id, Op::DIVIDE);
    if (!parts) return InstrId::None;
    const InstrId below = r.beside(parts->second, Op::DIVIDE, lanczos::kTerms[i]);
    if (below == InstrId::None) return InstrId::None;
    const InstrId x = r.beside(below, Op::ADD, static_cast<double>(i + 1));
    if (x == InstrId::None || (z != InstrId::None && x != z)) return InstrId::None;
    z = x;
    id = parts->first;
  }
  return r.is_constant(id, lanczos::kBase) ? z : InstrId::None;
}

constexpr double kShift = lanczos::kG + 0.5;

/// True for log(z + g + 1/2), computed as log(g + 1/2) + log1p(z / (g + 1/2)).
bool is_log_of_shifted(const Reader& r, InstrId id, InstrId z) {
  const InstrId log1p = r.beside(id, Op::ADD, std::log(kShift));
  if (log1p == InstrId::None || !r.is(log1p, Op::LOG_PLUS_ONE)) return false;
  const InstrId ratio = r.operand(log1p, 0);
  return r.is(ratio, Op::DIVIDE) && r.operand(ratio, 0) == z && r.is_constant(r.operand(ratio, 1), kShift);
}

/// Returns z of (log(2 pi) / 2 + (z + 1/2 - t / log t) * log t) + log(sum of terms), where t = z + g + 1/2.
InstrId argument_of_lgamma(const Reader& r, InstrId id) {
  const auto parts = r.sum_with(id, Op::LOG);
  if (!parts) return InstrId::None;
  const InstrId z = argument_of_terms(r, r.operand(parts->second, 0));
  if (z == InstrId::None) return InstrId::None;
  const InstrId product = r.beside(parts->first, Op::ADD, std::log(2 * std::numbers::pi) / 2);
  if (product == InstrId::None || !r.is(product, Op::MULTIPLY)) return InstrId::None;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const InstrId difference = r.operand(product, i), log_t = r.operand(product, 1 - i);
    if (!r.is(difference, Op::SUBTRACT) || !is_log_of_shifted(r, log_t, z)) continue;
    const InstrId ratio = r.operand(difference, 1);
    if (r.is_sum(r.operand(difference, 0), z, 0.5) && r.is(ratio, Op::DIVIDE) &&
        r.is_sum(r.operand(ratio, 0), z, kShift) && r.operand(ratio, 1) == log_t)
      return z;
  }
  return InstrId::None;
}

/// True for the derivative of the sum of terms: 0 - terms[0] / (z + 1)^2 - terms[1] / (z + 2)^2 - ...
bool is_slope_of_terms(const Reader& r, InstrId id, InstrId z) {
  for (size_t i = lanczos::kTerms.size(); i-- > 0;) {
    if (!r.is(id, Op::SUBTRACT)) return false;
    const InstrId square = r.beside(r.operand(id, 1), Op::DIVIDE, lanczos::kTerms[i]);
    if (square == InstrId::None || !r.is(square, Op::MULTIPLY)) return false;
    for (const size_t k : {size_t{0}, size_t{1}})
      if (!r.is_sum(r.operand(square, k), z, static_cast<double>(i + 1))) return false;
    id = r.operand(id, 0);
  }
  return r.is_constant(id, 0);
}

/// Returns z of (log t + slope of terms / sum of terms) - g / t.
InstrId argument_of_digamma(const Reader& r, InstrId id) {
  if (!r.is(id, Op::SUBTRACT)) return InstrId::None;
  const InstrId t = r.beside(r.operand(id, 1), Op::DIVIDE, lanczos::kG);
  const auto parts = r.sum_with(r.operand(id, 0), Op::DIVIDE);
  if (t == InstrId::None || !parts) return InstrId::None;
  const InstrId z = argument_of_terms(r, r.operand(parts->second, 1));
  if (z == InstrId::None || !r.is_sum(t, z, kShift)) return InstrId::None;
  const bool same = is_slope_of_terms(r, r.operand(parts->second, 0), z) && is_log_of_shifted(r, parts->first, z);
  return same ? z : InstrId::None;
}

/// Returns x times the polynomial of x whose coefficients begin with the constant one.
InstrId times_polynomial(Builder& b, InstrId x, std::span<const double> coefficients) {
  InstrId sum = b.like(x, coefficients.back());
  for (size_t k = coefficients.size() - 1; k-- > 0;) sum = b.mad(sum, x, b.like(x, coefficients[k]));
  return b.mul(x, sum);
}

/// Coefficients of lgamma(2 + w) / w as a power series in w: 1 - gamma, then (-1)^k (zeta(k) - 1) / k for k = 2, 3, ... (Abramowitz and
/// Stegun, 6.1.33).
constexpr double kNearTwo[] = {
    0.42278433509846713939,     0.32246703342411321824,     -0.067352301053198095133,   0.020580808427784547879,
    -0.0073855510286739852663,  0.0028905103307415232858,   -0.0011927539117032609771,  0.00050966952474304242234,
    -0.00022315475845357937976, 0.000099457512781808533715, -0.0000449262367381331417,  0.000020507212775670691553,
    -9.439488275268395904e-6,   4.3748667899074878042e-6,   -2.0392157538013662368e-6,  9.5514121304074198329e-7,
    -4.4924691987645660433e-7,  2.1207184805554665869e-7,   -1.0043224823968099609e-7,  4.7698101693639805658e-8,
    -2.271109460894316491e-8,   1.0838659214896954091e-8,   -5.1834750419700466551e-9,  2.4836745438024783172e-9,
    -1.1921401405860912074e-9,  5.7313672416788620133e-10,  -2.7595228851242331452e-10, 1.3304764374244489481e-10};

/// Returns lgamma(1 + z) for z from -1/2 to 5/2, to within a few units in the last place also near the zeros at 0 and 1. Below 1/2 and
/// above 3/2 by lgamma(1 + z) = lgamma(2 + z) - log(1 + z).
InstrId lgamma_near_zeros(Builder& b, InstrId z) {
  constexpr size_t kOfF32 = 14;  // |w| <= 1/2, and terms fall by 4
  const size_t terms = b.type(z) == Type::F64 ? std::size(kNearTwo) : kOfF32;
  const auto less = [&](double value) { return b.compare(z, Direction::LT, b.like(z, value)); };
  const auto minus = [&](double value) { return b.sub(z, b.like(z, value)); };
  const InstrId below = less(0.5), between = less(1.5);
  const InstrId w = b.select(below, z, b.select(between, minus(1), minus(2)));
  const InstrId near_two = times_polynomial(b, w, std::span(kNearTwo).first(terms));
  const InstrId step = b.unary(Op::LOG_PLUS_ONE, b.select(below, z, minus(1)));
  return b.select(below, b.sub(near_two, step), b.select(between, near_two, b.add(near_two, step)));
}

/// The zero of digamma(1 + z), and coefficients of digamma(1 + z) / w as a power series in w, its distance from there:
/// (-1)^k zeta(k + 2, 1 + zero) for k = 0, 1, ... (Abramowitz and Stegun, 6.4.10).
constexpr double kZeroOfDigamma = 0.46163214496836236;  // rounded; the exact one is smaller by kRestOfZero
constexpr double kRestOfZero = 1.5522348162858676891e-17;
constexpr double kNearZeroOfDigamma[] = {
    0.96767224544762117043,    -0.44276316898359210609,    0.25849976095565101062,    -0.1639427054424065275,
    0.10782405069126236576,    -0.072199561256454710926,   0.048804288164143107225,   -0.033161126474847359292,
    0.02259764823221810466,    -0.015424765904948959139,   0.010538791616612175388,   -0.007204534386356868241,
    0.0049267813957298534464,  -0.0033698016554393280828,  0.0023051263267349278369,  -0.0015769367714301972593,
    0.0010788252019162965807,  -0.00073807093899600512957, 0.00050495326583460203518, -0.00034546802510630769956,
    0.00023635601564027052792, -0.00016170622091974803449, 0.00011063372768747410904, -0.000075691795821950659192};

/// Returns digamma(1 + z) for z from 1/4 to 3/4, where |w| < 0.29 and terms fall by 5.
InstrId digamma_near_zero(Builder& b, InstrId z) {
  constexpr size_t kOfF32 = 12;
  const bool wide = b.type(z) == Type::F64;
  const double high = wide ? kZeroOfDigamma : static_cast<double>(static_cast<float>(kZeroOfDigamma));
  const double low = (kZeroOfDigamma - high) - kRestOfZero;
  const InstrId w = b.sub(b.sub(z, b.like(z, high)), b.like(z, low));
  return times_polynomial(b, w, std::span(kNearZeroOfDigamma).first(wide ? std::size(kNearZeroOfDigamma) : kOfF32));
}

}  // namespace

InstrId refine_gamma(Builder& b, InstrId root) {
  const Type type = b.type(root);
  if (type != Type::F32 && type != Type::F64) return InstrId::None;
  const Reader reader(b.module());
  if (const InstrId z = argument_of_lgamma(reader, root); z != InstrId::None) {
    const InstrId near = b.compare(z, Direction::LT, b.like(z, kEndOfLgammaSeries));
    return b.select(near, lgamma_near_zeros(b, z), root);
  }
  if (const InstrId z = argument_of_digamma(reader, root); z != InstrId::None) {
    const InstrId distance = b.abs(b.sub(z, b.like(z, 0.5)));
    const InstrId near = b.compare(distance, Direction::LT, b.like(z, kEndOfDigammaSeries));
    return b.select(near, digamma_near_zero(b, z), root);
  }
  return InstrId::None;
}

}  // namespace collet::hlo
