// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/bounded_answer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "conformance/cases/case.h"
#include "conformance/cases/exact_answer.h"
#include "conformance/cases/plain_answer.h"
#include "conformance/cases/plain_interpreter.h"
#include "conformance/oracle/functions.h"

/// \file
/// Error analysis of a whole program. Each float value is represented by a center in f64 and a radius: every device
/// that rounds as docs/ops.md allows has a value within the radius of the center. An op computes the new center in
/// exact arithmetic, propagates the radii of its operands, and adds the error of its own rounding. The centers in f64
/// are rounded, too; 2^-52 of each center is added to the radius for that.

namespace collet::conformance {
namespace {

using KnownOperands = std::span<const Known* const>;
using Numbers = std::vector<double>;
using Results = std::optional<std::vector<Known>>;

constexpr double kCenterRoundoff = 0x1p-52;

struct Bounded {
  Numbers center, radius;
};

Numbers numbers_of(const Literal& value) {
  Numbers out(static_cast<size_t>(value.element_count()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = value.as_double(static_cast<int64_t>(i));
  return out;
}

Literal literal_of(const Shape& shape, const Numbers& numbers) {
  Literal out = Literal::zeros(Shape::array(Type::F64, shape.dims()));
  for (size_t i = 0; i < numbers.size(); ++i) out.set_double(static_cast<int64_t>(i), numbers[i]);
  return out;
}

Bounded bounded(const Known& known) {
  Numbers center = numbers_of(known.value);
  Numbers radius = known.is_exact() ? Numbers(center.size()) : numbers_of(known.radius);
  return {std::move(center), std::move(radius)};
}

Known known(const Shape& shape, const Bounded& value) {
  return {.value = literal_of(shape, value.center), .radius = literal_of(shape, value.radius)};
}

// Converts to arrays of f64, for ops that move elements or add them up.
Known widened(const Known& value) {
  Known out = known(value.value.shape(), bounded(value));
  const auto sizes = value.value.dynamic_sizes();
  out.value.set_dynamic_sizes({sizes.begin(), sizes.end()});
  out.radius.set_dynamic_sizes({sizes.begin(), sizes.end()});
  return out;
}

// The error of an op that may be `ulps` units of `type` off for results of magnitude up to `size`. A device that
// flushes denormals may lose one.
struct Rounding {
  Type type;
  bool flushes;

  double at(double size, double ulps) const {
    const double least = ulp_at(type, 0) / (2 * unit_roundoff(type));  // the least normal number
    return ulps * ulp_at(type, size) + kCenterRoundoff * size + (flushes && size < 2 * least ? least : 0);
  }
  // True if the type can represent this number, so that an exact op returns it.
  bool keeps(const ExactResult& result) const {
    Literal stored = Literal::zeros(Shape::scalar(type));
    stored.set_double(0, result.value);
    return result.rest == 0 && stored.as_double(0) == result.value &&
           (!flushes || result.value == 0 || !is_denormal(result.value));
  }
  bool is_denormal(double value) const { return std::fabs(value) < ulp_at(type, 0) / (2 * unit_roundoff(type)); }
  // True if results of magnitude up to `size` do not overflow to infinity.
  bool holds(double size) const {
    const double most = largest_finite(type);
    return size < most + ulp_at(type, most) / 2;
  }
};

double ulps_of(Op op, Type type) {
  const Bound bound = function_bound(op, type);
  // For types of less than 32 bits, one ULP is that of the rounded result, which adds half a ULP.
  return bound.kind != Bound::Kind::Ulp ? 0.5 : hlo::type_info(type).bits < 32 ? bound.ulps + 0.5 : bound.ulps;
}

bool is_monotone(Op op) {
  switch (op) {
    case Op::EXPONENTIAL:
    case Op::EXPONENTIAL_MINUS_ONE:
    case Op::LOG:
    case Op::LOG_PLUS_ONE:
    case Op::TANH:
    case Op::ERF:
    case Op::LOGISTIC:
    case Op::SQRT:
    case Op::RSQRT:
    case Op::CBRT:
    case Op::ASINH:
    case Op::SINH:
      return true;
    default:
      return false;
  }
}

Numbers function_of(Op op, const Numbers& a, const Numbers& b) {
  std::vector<ExactResult> results(a.size());
  exact_functions(op, a, b, results);
  Numbers out(a.size());
  for (size_t i = 0; i < a.size(); ++i) out[i] = results[i].value;
  return out;
}

// Returns how far the result of an exact op moves if its operands move by their radii; NaN if no bound is known.
Numbers spread_of(Op op, const Bounded& a, const Bounded& b, const Numbers& center) {
  const size_t count = center.size();
  Numbers out(count, std::numeric_limits<double>::quiet_NaN());
  if (is_monotone(op)) {
    Numbers low(count), high(count);
    for (size_t i = 0; i < count; ++i) {
      low[i] = a.center[i] - a.radius[i] * (1 + kCenterRoundoff);
      high[i] = a.center[i] + a.radius[i] * (1 + kCenterRoundoff);
    }
    const Numbers first = function_of(op, low, {}), last = function_of(op, high, {});
    for (size_t i = 0; i < count; ++i)
      out[i] = a.radius[i] == 0 ? 0 : std::max(std::fabs(first[i] - center[i]), std::fabs(last[i] - center[i]));
    return out;
  }
  for (size_t i = 0; i < count; ++i) {
    const double x = std::fabs(a.center[i]), r = a.radius[i];
    const double y = b.center.empty() ? 0 : std::fabs(b.center[i]), s = b.center.empty() ? 0 : b.radius[i];
    if (r == 0 && s == 0) {
      out[i] = 0;
      continue;
    }
    switch (op) {
      case Op::ADD:
      case Op::SUBTRACT:
        out[i] = r + s;
        break;
      case Op::MULTIPLY:
        out[i] = (r == 0 ? 0 : r * (y + s)) + (s == 0 ? 0 : s * x);
        break;
      case Op::DIVIDE:
        if (y > s) out[i] = (r + x / y * s) / (y - s);
        break;
      case Op::SINE:
      case Op::COSINE:
        out[i] = r;
        break;
      default:
        break;
    }
  }
  return out;
}

// True if a value is what it is on every device: an infinity or NaN, a number without an error, or one whose error cannot make it
// zero or change its sign.
bool is_sure(const Bounded& value, size_t i) {
  return !std::isfinite(value.center[i]) || value.radius[i] == 0 || std::fabs(value.center[i]) > value.radius[i];
}

// Computes an elementwise op that is rounded once, or a function with an error bound of its own.
std::optional<Known> rounded(const Instruction& instr, const Bounded& a, const Bounded& b, const Rounding& rounding) {
  std::vector<ExactResult> results(a.center.size());
  exact_functions(instr.op, a.center, b.center, results);
  Bounded out;
  for (const ExactResult& result : results) out.center.push_back(result.value);
  out.radius = spread_of(instr.op, a, b, out.center);
  const double ulps = ulps_of(instr.op, rounding.type);
  for (size_t i = 0; i < out.center.size(); ++i) {
    const double center = out.center[i];
    const bool is_exact = a.radius[i] == 0 && (b.radius.empty() || b.radius[i] == 0);
    const bool is_special = !std::isfinite(a.center[i]) || (!b.center.empty() && !std::isfinite(b.center[i]));
    if (is_special && !std::isfinite(center)) {
      // Of arithmetic, NaN and infinities follow from the other operand's sign and from whether it is zero; of others, from its value.
      const bool by_sign =
          instr.op == Op::ADD || instr.op == Op::SUBTRACT || instr.op == Op::MULTIPLY || instr.op == Op::DIVIDE;
      const bool has_nan = std::isnan(a.center[i]) || std::isnan(b.center.empty() ? 0 : b.center[i]);
      const bool is_sure_here = by_sign ? has_nan || (is_sure(a, i) && is_sure(b, i)) : is_exact;
      if (!is_sure_here) return std::nullopt;
      out.radius[i] = 0;
      continue;
    }
    if (std::isnan(center) && is_exact) {  // outside of the function's domain
      out.radius[i] = 0;
      continue;
    }
    const double size = std::fabs(center) + out.radius[i];
    if (!rounding.holds(size)) return std::nullopt;  // also for NaN
    if (!(is_exact && ulps < 1 && rounding.keeps(results[i]))) out.radius[i] += rounding.at(size, ulps);
  }
  return known(instr.shape, out);
}

// Computes maximum or minimum of two values; the radius of either may apply.
Known extreme(const Instruction& instr, const Bounded& a, const Bounded& b) {
  Bounded out;
  for (size_t i = 0; i < a.center.size(); ++i) {
    const double x = a.center[i], y = b.center[i];
    const double center = std::isnan(x) || std::isnan(y) ? std::numeric_limits<double>::quiet_NaN()
                          : instr.op == Op::MAXIMUM      ? std::max(x, y)
                                                         : std::min(x, y);
    out.center.push_back(center);
    out.radius.push_back(std::isfinite(center) ? std::max(a.radius[i], b.radius[i]) : 0);
  }
  return known(instr.shape, out);
}

// Computes a conversion to another float type.
std::optional<Known> converted(const Instruction& instr, const Bounded& from, const Rounding& rounding) {
  Bounded out = from;
  Literal stored = Literal::zeros(instr.shape);
  for (size_t i = 0; i < from.center.size(); ++i) {
    const double center = from.center[i], size = std::fabs(center) + from.radius[i];
    stored.set_double(static_cast<int64_t>(i), center);
    if (!std::isfinite(center)) {  // a type without infinities has another value for one
      if (std::isinf(center)) out.center[i] = stored.as_double(static_cast<int64_t>(i));
      out.radius[i] = 0;
      continue;
    }
    if (!rounding.holds(size)) return std::nullopt;
    const bool is_same = from.radius[i] == 0 && stored.as_double(static_cast<int64_t>(i)) == center;
    if (!is_same) out.radius[i] += rounding.at(size, 0.5);
  }
  return known(instr.shape, out);
}

// Computes an op that rounds to whole numbers, floats or integers, where no error changes which; nullopt for others.
std::optional<Known> rounded_to_whole(const Instruction& instr, const Bounded& from) {
  const Type type = instr.shape.type();
  const bool integers = hlo::is_integer(type);
  const int bits = hlo::type_info(type).bits;
  if (integers && bits > 32) return std::nullopt;
  const double low = hlo::is_signed(type) ? -std::ldexp(1, bits - 1) : 0;
  const double high = std::ldexp(1, hlo::is_signed(type) ? bits - 1 : bits) - 1;
  const auto whole = [&](double x) {
    if (instr.op == Op::ROUND_NEAREST_EVEN) return std::nearbyint(x);
    if (instr.op == Op::ROUND_NEAREST_AFZ) return std::round(x);
    return std::clamp(std::trunc(x), low, high);  // a conversion
  };
  Literal out = Literal::zeros(instr.shape);
  for (size_t i = 0; i < from.center.size(); ++i) {
    if (std::isnan(from.center[i])) {
      if (!integers) out.set_double(static_cast<int64_t>(i), from.center[i]);  // the integer is 0
      continue;
    }
    const double reach = from.radius[i] * (1 + kCenterRoundoff);
    const double first = whole(from.center[i] - reach), last = whole(from.center[i] + reach);
    if (!(first == last)) return std::nullopt;
    if (integers)
      out.set_int(static_cast<int64_t>(i), static_cast<int64_t>(first));
    else
      out.set_double(static_cast<int64_t>(i), first);
  }
  return Known{.value = std::move(out)};
}

// Computes a clamp by exact bounds.
std::optional<Known> clamped(const Instruction& instr, const Known& least, const Bounded& from, const Known& most) {
  if (!least.is_exact() || !most.is_exact()) return std::nullopt;
  Bounded out;
  for (size_t i = 0; i < from.center.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const double low = least.value.as_double(at), high = most.value.as_double(at), center = from.center[i];
    if (!(low <= high)) return std::nullopt;
    if (std::isnan(center)) {
      out.center.push_back(center);
      out.radius.push_back(0);
      continue;
    }
    const auto inside = [&](double x) { return std::clamp(x, low, high); };
    const double reach = from.radius[i] * (1 + kCenterRoundoff);
    out.center.push_back(inside(center));
    out.radius.push_back(from.radius[i] == 0 ? 0
                                             : std::max(std::fabs(inside(center + reach) - inside(center)),
                                                        std::fabs(inside(center - reach) - inside(center))));
  }
  return known(instr.shape, out);
}

// Returns the largest power of two of which all elements are multiples; 0 if one is not finite, infinity if all are
// zero.
double grain_of(const Literal& value) {
  double grain = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < value.element_count(); ++i) {
    const double x = value.as_double(i);
    if (!std::isfinite(x)) return 0;
    if (x == 0) continue;
    int exponent = 0;
    const auto bits = static_cast<uint64_t>(std::ldexp(std::fabs(std::frexp(x, &exponent)), 53));
    grain = std::min(grain, std::ldexp(1.0, exponent - 53 + std::countr_zero(bits)));
  }
  return grain;
}

// Returns the grain (see grain_of) of all terms of a sum whose operands are exact; 0 for others. If no sum of terms has
// more bits than the type of the sum, no addition is rounded.
double grain_of_terms(Op op, const std::vector<Known>& operands) {
  for (const Known& operand : operands)
    for (int64_t i = 0; !operand.is_exact() && i < operand.radius.element_count(); ++i)
      if (operand.radius.as_double(i) != 0) return 0;
  const double first = grain_of(operands[0].value);
  if (op == Op::DOT || op == Op::CONVOLUTION) return first * grain_of(operands[1].value);
  if (op == Op::SELECT_AND_SCATTER) return std::min(grain_of(operands[1].value), grain_of(operands[2].value));
  return std::min(first, grain_of(operands.back().value));
}

// True if the infinities and NaNs among the operands of a sum, if there are any, give the same on every device.
bool is_special_sure(const Instruction& instr, const std::vector<Known>& operands) {
  bool special = false, sure = true;
  for (size_t k = 0; k < operands.size(); ++k) {
    if (!hlo::is_float(operands[k].value.type())) continue;
    const Bounded value = bounded(operands[k]);
    for (size_t i = 0; i < value.center.size(); ++i) {
      special |= !std::isfinite(value.center[i]);
      sure &= is_sure(value, i);
    }
  }
  if (!special) return true;
  if (instr.op == Op::SELECT_AND_SCATTER) return false;
  // Of products zero and the sign count, of sums only the infinite terms.
  return sure || (instr.op != Op::DOT && instr.op != Op::CONVOLUTION);
}

// Computes an op that adds. The effect of the radii is the sum of magnitudes computed with operands enlarged by their
// radii, minus the same without radii. The rest of the error is the rounding of a sum in any order.
std::optional<Known> summed(const PlainInterpreter& interpreter, const Instruction& instr, KnownOperands operands,
                            const Rounding& rounding) {
  if (instr.shape.type() == Type::F8E8M0FNU) return std::nullopt;  // it has no zero for padding
  std::vector<Known> wide;
  for (const Known* operand : operands)
    wide.push_back(hlo::is_float(operand->value.type()) ? widened(*operand) : *operand);
  std::vector<Literal> outer;
  for (const Known& operand : wide) {
    Literal& size = outer.emplace_back(operand.value);
    if (operand.is_exact()) continue;
    for (int64_t i = 0; i < size.element_count(); ++i) {
      const double most = std::fabs(operand.value.as_double(i)) + operand.radius.as_double(i);
      size.set_double(i, most);
    }
  }
  const bool is_product = instr.op == Op::DOT || instr.op == Op::CONVOLUTION;
  if (!is_special_sure(instr, wide)) return std::nullopt;
  std::vector<const Literal*> centers, sizes;
  for (size_t k = 0; k < wide.size(); ++k) {
    centers.push_back(&wide[k].value);
    sizes.push_back(&outer[k]);
  }
  // The first operand decides which elements a select-and-scatter selects, so its values must be exact.
  if (instr.op == Op::SELECT_AND_SCATTER) {
    if (!operands[0]->is_exact()) return std::nullopt;
    sizes[0] = centers[0];
  }
  const std::optional<ExactSums> exact = exact_sums(interpreter.module(), instr, centers);
  if (!exact) return std::nullopt;
  const std::optional<ExactSums> most = exact_sums(interpreter.module(), instr, sizes);
  const ProductError error = product_error(algorithm_of(instr));
  const double own = unit_roundoff(rounding.type),
               u = std::max(is_product ? std::min(own, unit_roundoff(Type::F32)) : own, error.additions);
  const double grain = grain_of_terms(instr.op, wide);
  Bounded out{numbers_of(exact->sum.exact), {}};
  for (size_t i = 0; i < out.center.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const auto terms = static_cast<double>(exact->terms[i]);
    const double with = most->sum.magnitude.as_double(at), without = exact->sum.magnitude.as_double(at);
    if (!rounding.holds(with)) return std::nullopt;
    if (!std::isfinite(out.center[i])) {
      out.radius.push_back(0);
      continue;
    }
    // A single term is stored without rounding, unless it is a product.
    const bool is_stored = terms == 0 || (terms == 1 && !is_product);
    const double moved = with > without ? with - without + 2 * terms * kCenterRoundoff * with : 0;
    const bool is_whole = error.operands == 0 && grain * (1 / u) >= with && !std::isnan(grain);
    const ExactResult sum{out.center[i], exact->sum.rest.as_double(at)};
    double own_error = is_stored || is_whole ? 0 : (error.operands + gamma_of(terms * error.operations, u)) * with;
    if (!is_stored && !(is_whole && rounding.keeps(sum)))
      own_error += rounding.at(std::fabs(out.center[i]) + moved, is_whole ? 0.5 : 1);
    out.radius.push_back(moved + own_error);
  }
  return known(instr.shape, out);
}

// Computes a reduction or window reduction by maximum or minimum.
std::optional<Known> extreme_of_all(const PlainInterpreter& interpreter, const Instruction& instr,
                                    KnownOperands operands) {
  const hlo::Computation& body = interpreter.module()[instr.called[0]];
  const Instruction& root = interpreter.module()[body.root];
  if (operands.size() != 2 || (root.op != Op::MAXIMUM && root.op != Op::MINIMUM)) return std::nullopt;
  const bool only_compares = std::all_of(body.order.begin(), body.order.end(), [&](hlo::InstrId at) {
    const Op op = interpreter.module()[at].op;
    return op == Op::PARAMETER || op == Op::MAXIMUM || op == Op::MINIMUM;
  });
  if (!only_compares) return std::nullopt;
  const Known data = widened(*operands[0]), start = widened(*operands[1]);
  Instruction wide = instr;
  wide.shape = instr.shape.with_type(Type::F64);
  // Such a body works on f64 as well.
  const auto values = plain_results(interpreter, wide, std::vector{&data.value, &start.value});
  if (!values) return std::nullopt;
  double radius = 0;
  for (const Known* operand : {&data, &start})
    for (int64_t i = 0; i < operand->radius.element_count(); ++i)
      radius = std::max(radius, operand->radius.as_double(i));
  Bounded out{numbers_of((*values)[0]), {}};
  for (const double center : out.center) out.radius.push_back(std::isfinite(center) ? radius : 0);
  return known(instr.shape, out);
}

// Applies data movement to centers and radii.
std::optional<Known> moved(const PlainInterpreter& interpreter, const Instruction& instr, KnownOperands operands) {
  std::vector<Known> wide;
  for (const Known* operand : operands)
    wide.push_back(hlo::is_float(operand->value.type()) || !operand->is_exact() ? widened(*operand) : *operand);
  std::vector<const Literal*> centers, radii;
  for (const Known& operand : wide) {
    centers.push_back(&operand.value);
    radii.push_back(operand.is_exact() ? &operand.value : &operand.radius);
  }
  Instruction changed = instr;
  changed.shape = instr.shape.with_type(Type::F64);
  auto center = plain_results(interpreter, changed, centers), radius = plain_results(interpreter, changed, radii);
  if (!center || !radius) return std::nullopt;
  if (instr.shape.type() != Type::PRED)
    return Known{.value = std::move((*center)[0]), .radius = std::move((*radius)[0])};
  Literal truth = Literal::zeros(instr.shape);
  for (int64_t i = 0; i < truth.element_count(); ++i) truth.set_int(i, (*center)[0].as_double(i) != 0);
  return Known{.value = std::move(truth), .radius = std::move((*radius)[0])};
}

// Computes a comparison. An element that errors can change gets the radius 1: it may be true or false.
std::optional<Known> compared(const Instruction& instr, const Bounded& a, const Bounded& b) {
  const auto& attrs = instr.as<hlo::CompareAttrs>();
  if (attrs.type == hlo::CompareType::TOTALORDER) return std::nullopt;
  Known out{.value = Literal::zeros(instr.shape)};
  for (size_t i = 0; i < a.center.size(); ++i) {
    const double x = a.center[i], y = b.center[i], unsure = a.radius[i] + b.radius[i];
    if (std::isnan(x) || std::isnan(y)) {
      out.value.set_int(static_cast<int64_t>(i), attrs.direction == hlo::Direction::NE);
      continue;
    }
    const double difference = x == y ? 0 : x - y;  // also of infinities
    if (std::isfinite(difference) && unsure > 0 && std::fabs(difference) <= unsure) {
      if (!out.radius.valid()) out.radius = Literal::zeros(Shape::array(Type::F64, instr.shape.dims()));
      out.radius.set_double(static_cast<int64_t>(i), 1);
    }
    using enum hlo::Direction;
    const bool less = difference < 0, equal = difference == 0;
    const hlo::Direction d = attrs.direction;
    const bool holds = equal  ? d == EQ || d == LE || d == GE
                       : less ? d == NE || d == LT || d == LE
                              : d == NE || d == GT || d == GE;
    out.value.set_int(static_cast<int64_t>(i), holds);
  }
  return out;
}

// Computes a selection by a predicate that is not known everywhere: there, either value is possible.
std::optional<Known> selected(const Instruction& instr, KnownOperands operands) {
  const Known& predicate = *operands[0];
  const int64_t count = instr.shape.element_count();
  const bool is_number = hlo::is_float(instr.shape.type());
  if (predicate.value.element_count() != count || (!is_number && instr.shape.type() != Type::PRED)) return std::nullopt;
  const Bounded on_true = bounded(*operands[1]), on_false = bounded(*operands[2]);
  Bounded out;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const auto at = static_cast<int64_t>(i);
    const bool holds = predicate.value.as_int(at) != 0, is_open = predicate.radius.as_double(at) != 0;
    const Bounded& taken = holds ? on_true : on_false;
    double radius = taken.radius[i];
    if (is_open) {
      const Bounded& other = holds ? on_false : on_true;
      const double apart = other.center[i] == taken.center[i] ? 0 : std::fabs(other.center[i] - taken.center[i]);
      if (!std::isfinite(apart)) return std::nullopt;
      radius = std::max(radius, apart + other.radius[i]);
    }
    out.center.push_back(taken.center[i]);
    out.radius.push_back(radius);
  }
  if (is_number) return known(instr.shape, out);
  Known open{.value = Literal::zeros(instr.shape),
             .radius = Literal::zeros(Shape::array(Type::F64, instr.shape.dims()))};
  for (int64_t i = 0; i < count; ++i) {
    open.value.set_int(i, out.center[static_cast<size_t>(i)] != 0);
    open.radius.set_double(i, out.radius[static_cast<size_t>(i)] != 0 ? 1 : 0);
  }
  return open;
}

// Computes an op on predicates that are not known everywhere: a result that does not depend on them is known.
std::optional<Known> combined(const Instruction& instr, KnownOperands operands) {
  const auto is_open = [&](size_t k, int64_t i) {
    return !operands[k]->is_exact() && operands[k]->radius.as_double(i) != 0;
  };
  Known out{.value = Literal::zeros(instr.shape),
            .radius = Literal::zeros(Shape::array(Type::F64, instr.shape.dims()))};
  for (int64_t i = 0; i < instr.shape.element_count(); ++i) {
    const bool a = operands[0]->value.as_int(i) != 0, a_open = is_open(0, i);
    const bool b = operands.size() > 1 && operands[1]->value.as_int(i) != 0,
               b_open = operands.size() > 1 && is_open(1, i);
    const bool a_decides = !a_open && a == (instr.op == Op::OR), b_decides = !b_open && b == (instr.op == Op::OR);
    switch (instr.op) {
      case Op::NOT:
        out.value.set_int(i, !a);
        break;
      case Op::AND:
        out.value.set_int(i, a && b);
        break;
      case Op::OR:
        out.value.set_int(i, a || b);
        break;
      default:
        return std::nullopt;
    }
    const bool is_decided = instr.op != Op::NOT && (a_decides || b_decides);
    out.radius.set_double(i, (a_open || b_open) && !is_decided ? 1 : 0);
  }
  return out;
}

// Computes set-dimension-size: keeps the first elements of a dimension and ignores the others.
std::optional<Known> cut(const Instruction& instr, KnownOperands operands) {
  if (operands.size() != 2 || !operands[1]->is_exact()) return std::nullopt;
  Known out = *operands[0];
  const Shape& shape = out.value.shape();
  std::vector<int64_t> sizes(shape.dims().begin(), shape.dims().end());
  const auto d = static_cast<size_t>(instr.as<hlo::DimensionAttrs>().dimension);
  const int64_t size = operands[1]->value.as_int(0);
  if (size < 0 || size > sizes[d]) return std::nullopt;
  sizes[d] = size;
  out.value.set_dynamic_sizes(std::move(sizes));
  return out;
}

bool keeps_values(Op op) {
  switch (op) {
    case Op::NEGATE:
    case Op::ABS:
    case Op::SELECT:
    case Op::MAXIMUM:
    case Op::MINIMUM:
    case Op::CONSTANT:
    case Op::IOTA:
      return true;
    default:
      return is_move(op);
  }
}

Results one(std::optional<Known> value) {
  if (!value) return std::nullopt;
  std::vector<Known> out;
  out.push_back(*std::move(value));
  return out;
}

Results exactly(const PlainInterpreter& interpreter, const Instruction& instr, KnownOperands operands) {
  std::vector<const Literal*> values;
  for (const Known* operand : operands) values.push_back(&operand->value);
  auto results = plain_results(interpreter, instr, values);
  if (!results) return std::nullopt;
  std::vector<Known> out;
  for (Literal& result : *results) out.push_back({.value = std::move(result)});
  return out;
}

bool is_summing(Op op) {
  return op == Op::DOT || op == Op::CONVOLUTION || op == Op::REDUCE || op == Op::REDUCE_WINDOW || op == Op::SCATTER ||
         op == Op::SELECT_AND_SCATTER;
}

Results bounded_results(const PlainInterpreter& interpreter, const Instruction& instr, KnownOperands operands,
                        bool flushes) {
  bool all_exact = true, is_cut = false;
  for (const Known* operand : operands) {
    if (operand->is_tuple || !operand->value.shape().is_array()) return std::nullopt;
    all_exact &= operand->is_exact();
    is_cut |= !operand->value.dynamic_sizes().empty();
  }
  if (instr.op == Op::SET_DIMENSION_SIZE) return one(cut(instr, operands));
  if (is_cut && instr.op != Op::REDUCE) return std::nullopt;
  const bool is_float = instr.shape.is_array() && hlo::is_float(instr.shape.type());
  const bool is_unreduced = instr.op == Op::REDUCE && instr.as<hlo::DimensionsAttrs>().dimensions.empty();
  if (all_exact && (!is_float || is_unreduced || keeps_values(instr.op))) return exactly(interpreter, instr, operands);
  if (operands.empty() || !instr.shape.is_array() || hlo::is_complex(instr.shape.type())) return std::nullopt;
  const Rounding rounding{instr.shape.type(), flushes};
  if (is_summing(instr.op)) {
    std::optional<Known> sums = summed(interpreter, instr, operands, rounding);
    if (!sums && instr.op == Op::REDUCE && !is_cut) sums = extreme_of_all(interpreter, instr, operands);
    return one(std::move(sums));
  }
  if (is_move(instr.op)) return one(moved(interpreter, instr, operands));
  if (instr.op == Op::SELECT)
    return one(operands[0]->is_exact() ? moved(interpreter, instr, operands) : selected(instr, operands));
  for (const Known* operand : operands)
    if (operand->value.element_count() != instr.shape.element_count()) return std::nullopt;
  const Bounded a = bounded(*operands[0]), b = operands.size() == 2 ? bounded(*operands[1]) : Bounded{};
  if (instr.op == Op::COMPARE) return one(compared(instr, a, b));
  if (instr.shape.type() == Type::PRED) return one(combined(instr, operands));
  const bool from_float = hlo::is_float(operands[0]->value.type());
  if (instr.op == Op::CONVERT && from_float && hlo::is_integer(instr.shape.type()))
    return one(rounded_to_whole(instr, a));
  if (!is_float) return std::nullopt;
  switch (instr.op) {
    case Op::CLAMP:
      return one(clamped(instr, *operands[0], bounded(*operands[1]), *operands[2]));
    case Op::ROUND_NEAREST_EVEN:
    case Op::ROUND_NEAREST_AFZ:
      return one(rounded_to_whole(instr, a));
    case Op::CONVERT:
      return one(converted(instr, a, rounding));
    case Op::MAXIMUM:
    case Op::MINIMUM:
      return one(extreme(instr, a, b));
    case Op::NEGATE:
    case Op::ABS: {
      Bounded out = a;
      for (double& center : out.center) center = instr.op == Op::ABS ? std::fabs(center) : -center;
      return one(known(instr.shape, out));
    }
    default:
      return has_exact_function(instr.op) ? one(rounded(instr, a, b, rounding)) : std::nullopt;
  }
}

// Converts a result to a reference. The radius holds for a device that computes op by op. A device that computes a
// pattern as one call may use another formula with as many roundings, so twice the radius, and the rounding of the
// stored result, are allowed.
Reference reference_of(const Known& result, const Shape& shape) {
  Reference out{.value = result.value};
  if (result.is_exact()) return out;
  out.value = Literal::zeros(shape);
  out.exact = result.value;
  out.allowed = Literal::zeros(result.radius.shape());
  for (int64_t i = 0; i < out.value.element_count(); ++i) {
    const double center = result.value.as_double(i);
    out.value.set_double(i, center);
    const double radius = result.radius.as_double(i);
    const bool is_rounded = radius != 0 && hlo::is_float(shape.type());
    out.allowed.set_double(i, is_rounded ? 2 * radius + ulp_at(shape.type(), center) : radius);
  }
  return out;
}

bool add_references(const Known& result, const Shape& shape, std::vector<Reference>& out) {
  if (!result.is_tuple) {
    out.push_back(reference_of(result, shape));
    return true;
  }
  if (!shape.is_tuple() || shape.elements().size() != result.parts.size()) return false;
  for (size_t i = 0; i < result.parts.size(); ++i)
    if (!add_references(result.parts[i], shape.element(i), out)) return false;
  return true;
}

}  // namespace

std::optional<std::vector<Reference>> bounded_answer(const hlo::Module& module, std::span<const Literal> inputs,
                                                     bool flushes) {
  const PlainInterpreter interpreter(
      module, [flushes](const PlainInterpreter& self, const Instruction& instr, KnownOperands operands) {
        return bounded_results(self, instr, operands, flushes);
      });
  std::vector<Known> arguments;
  for (const Literal& input : inputs) arguments.push_back({.value = input});
  const std::optional<Known> root = interpreter.run(module.entry(), std::move(arguments));
  std::vector<Reference> out;
  if (!root || !add_references(*root, module[module.entry_computation().root].shape, out)) return std::nullopt;
  return out;
}

}  // namespace collet::conformance
