// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "conformance/oracle/pattern.h"
#include "hlo/base/float_format.h"

namespace collet::conformance {
namespace {

using namespace collet::hlo;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

FloatFormat format_of(Type type) {
  return float_format(static_cast<uint32_t>(real_type(type)));
}

int smallest_exponent(const FloatFormat& format) {
  return 1 - format.bias;
}

double smallest_normal(Type type) {
  return std::ldexp(1.0, smallest_exponent(format_of(type)));
}

// Returns the real part or, if `part` is 1, the imaginary part.
double part_of(const Literal& value, int64_t i, int part) {
  return part == 0 ? value.as_double(i) : value.imaginary(i);
}

struct AllowedError {
  Type type;
  const Bound& bound;
  const Reference& reference;
  double scale = 0;  // largest finite magnitude of the output
  bool flushes = false;

  // Returns the allowed error of part `part` of element `i`. `expected` is that part of the expected value, `modulus` the
  // magnitude of the whole value.
  double allowed(int64_t i, int part, double expected, double modulus) const {
    if (reference.allowed.valid()) return part_of(reference.allowed, i, part);
    const double ulp = ulp_at(type, is_complex(type) && !has_parts() ? modulus : expected);
    switch (bound.kind) {
      case Bound::Kind::Ulp:
        return bound.ulps * (has_parts() ? conditioned_ulp(i, part, ulp, modulus) : ulp);
      case Bound::Kind::Scaled:
        return bound.ulps * std::max(ulp_at(type, scale), ulp);
      case Bound::Kind::Sum:
        return sum_bound(i, part, ulp);
      default:
        return 0;
    }
  }

  // Returns one ULP of the part plus the amount by which it changes if each part of the operands changes by one ULP;
  // but at most one ULP of the modulus, unless the bound allows more.
  double conditioned_ulp(int64_t i, int part, double ulp, double modulus) const {
    const double moves = 2 * unit_roundoff(type) * part_of(reference.magnitude, i, part);
    const bool capped = is_complex(type) && !bound.conditioned;
    return capped ? std::min(ulp + moves, ulp_at(type, modulus)) : ulp + moves;
  }

  // True if each part of complex numbers has a bound of its own.
  bool has_parts() const {
    if (!reference.magnitude.valid()) return false;
    // For sums of complex numbers that the evaluator computed, `magnitude` is that of the whole number, not of its parts.
    return bound.kind == Bound::Kind::Ulp || (reference.rest.valid() && is_complex(reference.magnitude.type()));
  }

  double sum_bound(int64_t i, int part, double ulp) const {
    const double own = unit_roundoff(type);
    const double u = std::max(bound.wide ? std::min(own, unit_roundoff(Type::F32)) : own, bound.additions);
    const double magnitude = std::fabs(part_of(reference.magnitude, i, has_parts() ? part : 0));
    // An infinite term, of a type whose sums of finite ones do not overflow in f64: the sum is infinite or NaN, and has no error.
    if (std::isinf(magnitude) && type != Type::F64 && type != Type::C128) return 0;
    // A part of a complex product is a sum of two real products. If magnitudes are not known by part, both parts of
    // both operands count, which gives four.
    const double terms = has_parts() ? 2 * bound.terms : bound.terms;
    const double factor = is_complex(type) && !has_parts() ? 4 : 1;
    // If the sum is not exact, one more term accounts for the rounding of the oracle's f64.
    const double relative = bound.operands + gamma_of(reference.rest.valid() ? terms : terms + 1, u);
    return factor * relative * magnitude + ulp;
  }
};

bool same_special(double expected, double got) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got);
  return expected == got;
}

// A result is flushed if it is tiny before it is rounded, or after.
bool is_flushed(const AllowedError& judge, int64_t i, double expected, double rounded, double got) {
  const Literal& open = judge.reference.zero_too;
  return judge.flushes && got == 0 &&
         (std::min(std::fabs(expected), std::fabs(rounded)) < smallest_normal(judge.type) ||
          (open.valid() && open.as_int(i) != 0));
}

// Returns whether `got` is within the allowed error; updates the largest errors.
bool judge_part(const AllowedError& judge, int64_t i, int part, double expected, double rounded, double got,
                double modulus, Comparison& result, double& share) {
  if (!std::isfinite(rounded) || !std::isfinite(got)) {
    if (same_special(rounded, got)) return true;
    // Near overflow an error of one ULP may cross to infinity or back.
    const double allowed = judge.allowed(i, part, expected, modulus);
    const bool near = allowed > 0 && !std::isnan(rounded) && !std::isnan(got) &&
                      std::signbit(rounded) == std::signbit(got) &&
                      std::min(std::fabs(rounded), std::fabs(got)) >= largest_finite(judge.type) - 2 * allowed;
    if (!near) result.worst_ulp = kInfinity;
    return near;
  }
  if (is_flushed(judge, i, expected, rounded, got)) return true;
  if (judge.bound.kind == Bound::Kind::Exact) {
    const bool same = rounded == got && (rounded != 0 || std::signbit(rounded) == std::signbit(got));
    if (!same) result.worst_ulp = std::max(result.worst_ulp, std::max(ulp_error(judge.type, rounded, got), 1.0));
    return same;
  }
  // A function with a bound in ULP must return zeros with the right sign.
  if (judge.bound.kind == Bound::Kind::Ulp && rounded == 0 && got == 0 && !is_complex(judge.type) &&
      std::signbit(rounded) != std::signbit(got)) {
    result.worst_ulp = std::max(result.worst_ulp, 1.0);
    return false;
  }
  const double rest = judge.reference.rest.valid() ? part_of(judge.reference.rest, i, part) : 0;
  const double error = std::fabs(got - expected - rest);
  const double allowed = judge.allowed(i, part, expected, modulus);
  const double modulus_ulp = ulp_at(judge.type, is_complex(judge.type) ? modulus : expected);
  result.worst_ulp = std::max(result.worst_ulp, error / modulus_ulp);
  if (allowed > 0) share = std::max(share, error / allowed);
  return error <= allowed;
}

// Returns whether element `i` is within the allowed error. `share` is set to the error divided by the allowed error.
bool judge_element(const AllowedError& judge, int64_t i, const Literal& got, Comparison& result, double& share) {
  const Literal& rounded = judge.reference.value;
  const Literal& exact = judge.reference.exact.valid() ? judge.reference.exact : rounded;
  if (judge.type == Type::PRED) {  // the byte must be 0 or 1
    const bool is_open = judge.reference.allowed.valid() && judge.reference.allowed.as_double(i) != 0;
    return rounded.bytes()[i] == got.bytes()[i] || (is_open && static_cast<uint8_t>(got.bytes()[i]) <= 1);
  }
  if (!is_float(judge.type) && !is_complex(judge.type)) {
    return rounded.as_int(i) == got.as_int(i);
  }
  if (judge.reference.open.valid() && judge.reference.open.as_int(i) != 0) return true;
  if (judge.reference.nan_too.valid() && judge.reference.nan_too.as_int(i) != 0 && std::isnan(got.as_double(i)))
    return true;
  // The value of a NaN converted to a format without NaN is not specified.
  if (std::isnan(exact.as_double(i)) && format_of(judge.type).specials == FloatSpecials::FINITE) return true;
  const double modulus = std::hypot(exact.as_double(i), exact.imaginary(i));
  for (const int part : {0, 1}) {
    if (part == 1 && !is_complex(judge.type)) break;
    if (!judge_part(judge, i, part, part_of(exact, i, part), part_of(rounded, i, part), part_of(got, i, part), modulus,
                    result, share))
      return false;
  }
  return true;
}

size_t error_bin(bool good, double share) {
  if (!good) return kErrorBins - 1;
  if (share <= 0) return 0;
  constexpr int kLast = static_cast<int>(kErrorBins) - 2;
  return static_cast<size_t>(std::clamp(kLast + static_cast<int>(std::ceil(std::log2(share))), 1, kLast));
}

}  // namespace

double largest_magnitude(const Literal& value) {
  double largest = 0;
  for (int64_t i = 0; i < value.element_count(); ++i) {
    for (const double part : {value.as_double(i), value.imaginary(i)}) {
      if (std::isfinite(part)) largest = std::max(largest, std::fabs(part));
    }
  }
  return largest;
}

double gamma_of(double n, double u) {
  return n * u < 0.5 ? n * u / (1 - n * u) : kInfinity;
}

double unit_roundoff(Type type) {
  return std::ldexp(1.0, -(format_of(type).mantissa_bits + 1));
}

double largest_finite(Type type) {
  const FloatFormat format = format_of(type);
  if (format.specials == FloatSpecials::IEEE) {
    const int most = (1 << format.exponent_bits) - 2 - format.bias;
    return std::ldexp(2 - std::ldexp(1.0, -format.mantissa_bits), most);
  }
  const uint64_t patterns = uint64_t{1} << (format.bits() - (format.specials == FloatSpecials::E8M0 ? 0 : 1));
  for (uint64_t bits = patterns; bits-- > 0;) {
    if (const double value = decode_float(format, bits); std::isfinite(value)) return value;
  }
  return 0;
}

double ulp_at(Type type, double value) {
  const FloatFormat format = format_of(type);
  const int least = smallest_exponent(format);
  int exponent = least;
  if (value != 0 && std::isfinite(value)) exponent = std::max(least, std::ilogb(value));
  return std::ldexp(1.0, exponent - format.mantissa_bits);
}

double ulp_error(Type type, double expected, double got) {
  if (same_special(expected, got)) return 0;
  if (!std::isfinite(expected) || !std::isfinite(got)) return kInfinity;
  return std::fabs(got - expected) / ulp_at(type, expected);
}

std::string index_text(const Shape& shape, int64_t index) {
  std::vector<int64_t> at(static_cast<size_t>(shape.rank()));
  for (int d = shape.rank() - 1; d >= 0; --d) {
    const int64_t size = std::max<int64_t>(shape.dim(d), 1);
    at[static_cast<size_t>(d)] = index % size;
    index /= size;
  }
  return fmt::format("({})", fmt::join(at, ", "));
}

std::string element_text(const Literal& value, int64_t i) {
  if (is_float(value.type()) && std::isnan(value.as_double(i))) return "nan";
  if (is_complex(value.type())) return fmt::format("({:.9g}, {:.9g})", value.as_double(i), value.imaginary(i));
  if (is_float(value.type())) return fmt::format("{:.{}g}", value.as_double(i), value.type() == Type::F64 ? 17 : 9);
  if (value.type() == Type::U64) return fmt::format("{}", static_cast<uint64_t>(value.as_int(i)));
  return fmt::format("{}", value.as_int(i));
}

Comparison compare(const Reference& reference, const Literal& got, const Bound& bound, bool flushes) {
  Comparison result;
  const Literal& expected = reference.value;
  if (!expected.shape().same_without_layout(got.shape())) {
    return {.agrees = false,
            .bad = 1,
            .first = 0,
            .expected = expected.shape().to_string(),
            .got = got.shape().to_string(),
            .pattern = "another shape"};
  }
  if (!expected.shape().is_array()) return result;
  result.elements = expected.element_count();
  const AllowedError judge{expected.type(), bound, reference,
                           bound.kind == Bound::Kind::Scaled ? largest_magnitude(expected) : 0, flushes};
  const auto width = static_cast<size_t>(type_info(expected.type()).bytes());
  std::vector<int64_t> bad;
  for (int64_t i = 0; i < result.elements; ++i) {
    const size_t offset = static_cast<size_t>(i) * width;
    if (std::memcmp(expected.bytes() + offset, got.bytes() + offset, width) == 0) continue;
    double share = 0;
    const bool good = bound.kind != Bound::Kind::Bits && judge_element(judge, i, got, result, share);
    result.worst_share = std::max(result.worst_share, share);
    ++result.errors[error_bin(good, share)];
    if (!good) bad.push_back(i);
  }
  for (size_t bin = 1; bin < kErrorBins; ++bin) result.errors[0] -= result.errors[bin];
  result.errors[0] += result.elements;
  if (bad.empty()) return result;
  result.agrees = false;
  result.bad = static_cast<int64_t>(bad.size());
  result.first = bad.front();
  result.expected = element_text(expected, result.first);
  result.got = element_text(got, result.first);
  result.pattern = describe_pattern(got.shape(), bad);
  result.all_bad = std::move(bad);
  return result;
}

}  // namespace collet::conformance
