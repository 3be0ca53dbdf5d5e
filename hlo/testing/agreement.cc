// SPDX-License-Identifier: Apache-2.0
#include "hlo/testing/agreement.h"

#include <cmath>
#include <cstdio>

#include "hlo/base/float_format.h"

namespace collet::hlo::testing {
namespace {

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string element(const Literal& value, int64_t i) {
  if (is_integer(value.type()) || value.type() == Type::PRED)
    return value.type() == Type::U64 ? std::to_string(static_cast<uint64_t>(value.as_int(i)))
                                     : std::to_string(value.as_int(i));
  if (is_complex(value.type())) return "(" + number(value.as_double(i)) + ", " + number(value.imaginary(i)) + ")";
  return number(value.as_double(i));
}

std::string position(const Shape& shape, int64_t i) {
  std::string out;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    out = std::to_string(i % shape.dim(d)) + (out.empty() ? "" : ", ") + out;
    i /= shape.dim(d);
  }
  return "[" + out + "]";
}

double largest_finite(const Literal& value) {
  double largest = 0;
  for (int64_t i = 0; i < value.element_count(); ++i)
    for (double x : {value.as_double(i), value.imaginary(i)})
      if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
  return largest;
}

/// A unit in the last place of `type` at `value`.
double ulp_at(Type type, double value) {
  const FloatFormat format = float_format(static_cast<uint32_t>(real_type(type)));
  const int exponent = value == 0 ? 1 - format.bias : std::max(std::ilogb(value), 1 - format.bias);
  return std::ldexp(1.0, exponent - format.mantissa_bits);
}

double index_tolerance(Type type, double largest) {
  switch (real_type(type)) {
    case Type::F64:
      return 1e-12 * largest;
    case Type::F32:
      return 1e-4 * largest;
    case Type::F16:
      return 2e-3 * largest;
    case Type::BF16:
      return 2e-2 * largest;
    default:
      return ulp_at(type, largest);
  }
}

/// Error of one part; infinite where NaN or infinities differ.
double error_of(double expected, double got) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(expected) || std::isinf(got)) return expected == got ? 0 : INFINITY;
  return std::fabs(expected - got);
}

class Judge {
 public:
  explicit Judge(double allowed) : allowed_(allowed) {}
  /// Element `i` of `expected` against element `at` of `got`.
  void see(const Literal& expected, int64_t i, const Literal& got, int64_t at) {
    double error;
    if (is_integer(expected.type()) || expected.type() == Type::PRED)
      error = expected.as_int(i) == got.as_int(at) ? 0 : INFINITY;
    else
      error = std::max(error_of(expected.as_double(i), got.as_double(at)),
                       error_of(expected.imaginary(i), got.imaginary(at)));
    if (error > 0) result_.worst = std::max(result_.worst, error / allowed_);
    if (error <= allowed_) return;
    if (result_.agrees)
      result_.detail = "element " + position(got.shape(), at) + " is " + element(got, at) + ", expected " +
                       element(expected, i) + " within " + number(allowed_);
    result_.agrees = false;
    ++bad_;
  }
  Agreement result(int64_t seen) {
    if (bad_) result_.detail += "; " + std::to_string(bad_) + " of " + std::to_string(seen) + " are wrong";
    return result_;
  }

 private:
  double allowed_;
  Agreement result_;
  int64_t bad_ = 0;
};

/// Largest difference of floats that are finite in both; 0 for other types.
double distance(const Literal& a, const Literal& b) {
  double largest = 0;
  if ((!is_float(a.type()) && !is_complex(a.type())) || !a.shape().same_dims(b.shape())) return 0;
  for (int64_t i = 0; i < a.element_count(); ++i)
    for (double x : {a.as_double(i) - b.as_double(i), a.imaginary(i) - b.imaginary(i)})
      if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
  return largest;
}

/// Element `i` is not padding of a dynamic dimension.
bool is_inside(const Literal& value, int64_t i) {
  const auto sizes = value.dynamic_sizes();
  if (sizes.empty()) return true;
  for (int d = value.shape().rank() - 1; d >= 0; --d) {
    if (i % value.shape().dim(d) >= sizes[static_cast<size_t>(d)]) return false;
    i /= value.shape().dim(d);
  }
  return true;
}

Agreement refusal(std::string detail) {
  return {false, INFINITY, std::move(detail)};
}

}  // namespace

Agreement agrees_with_index(const Literal& expected, const Literal& got, const Literal* wide) {
  if (!got.valid() || !got.shape().compatible(expected.shape()))
    return refusal("the result is " + got.shape().to_string() + ", expected " + expected.shape().to_string());
  const double plain = index_tolerance(expected.type(), largest_finite(expected));
  const double conditioned = wide ? 4 * distance(got, *wide) : 0;
  Judge judge(std::max(plain, conditioned));
  for (int64_t i = 0; i < expected.element_count(); ++i)
    if (is_inside(got, i)) judge.see(expected, i, got, i);
  Agreement result = judge.result(expected.element_count());
  if (conditioned > plain && result.agrees)
    result.detail = "within " + number(conditioned) + " instead of " + number(plain) +
                    ", since the module in f64 differs by a quarter of it";
  return result;
}

Agreement agrees_with_index(std::span<const Literal> expected, std::span<const Literal> got,
                            std::span<const Literal> wide) {
  if (expected.size() != got.size())
    return refusal("there are " + std::to_string(got.size()) + " results, expected " + std::to_string(expected.size()));
  Agreement all;
  for (size_t k = 0; k < expected.size(); ++k) {
    const Agreement one = agrees_with_index(expected[k], got[k], k < wide.size() ? &wide[k] : nullptr);
    all.worst = std::max(all.worst, one.worst);
    if (one.detail.empty() || (one.agrees && !all.agrees)) continue;
    if (all.detail.empty() || all.agrees != one.agrees) all.detail = "output " + std::to_string(k) + ": " + one.detail;
    all.agrees = all.agrees && one.agrees;
  }
  return all;
}

Agreement agrees_with_model(const ModelOutput& expected, const Literal& got, bool as_f64) {
  if (!got.valid() || !got.shape().same_dims(expected.shape))
    return refusal("the result is " + got.shape().to_string() + ", expected " + expected.shape.to_string());
  double allowed = 0;
  if (!expected.exact)
    allowed = as_f64 ? 1e-9 * expected.max_abs
                     : std::max(4 * expected.xla_max_abs_error, 8 * ulp_at(expected.shape.type(), expected.max_abs));
  Judge judge(allowed);
  for (int64_t i = 0; i < expected.sample.element_count(); ++i) judge.see(expected.sample, i, got, i * expected.stride);
  return judge.result(expected.sample.element_count());
}

}  // namespace collet::hlo::testing
