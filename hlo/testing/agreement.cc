// SPDX-License-Identifier: Apache-2.0
#include "hlo/testing/agreement.h"

#include <algorithm>
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

bool is_exact(Type type) {
  return is_integer(type) || type == Type::PRED;
}

/// Returns a unit in the last place of `type` at `value`.
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

/// Returns the error of one real or imaginary part; infinite if NaN or infinities differ.
double error_of(double expected, double got) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(expected) || std::isinf(got)) return expected == got ? 0 : INFINITY;
  return std::fabs(expected - got);
}

class Comparer {
 public:
  explicit Comparer(double allowed) : allowed_(allowed) {}
  /// Compares element `i` of `expected` with element `at` of `got`.
  void see(const Literal& expected, int64_t i, const Literal& got, int64_t at) {
    double error;
    if (is_exact(expected.type()))
      error = expected.as_int(i) == got.as_int(at) ? 0 : INFINITY;
    else
      error = std::max(error_of(expected.as_double(i), got.as_double(at)),
                       error_of(expected.imaginary(i), got.imaginary(at)));
    if (error > 0) result_.worst = std::max(result_.worst, error / allowed_);
    if (error <= allowed_) return;
    if (result_.agrees)
      result_.detail = "element " + position(got.shape(), at) + " is " + element(got, at) + ", expected " +
                       element(expected, i) + (is_exact(expected.type()) ? "" : " within " + number(allowed_));
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

/// Returns the largest difference of floats that are finite in both; 0 for other types.
double distance(const Literal& a, const Literal& b) {
  double largest = 0;
  if ((!is_float(a.type()) && !is_complex(a.type())) || !a.shape().same_dims(b.shape())) return 0;
  for (int64_t i = 0; i < a.element_count(); ++i)
    for (double x : {a.as_double(i) - b.as_double(i), a.imaginary(i) - b.imaginary(i)})
      if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
  return largest;
}

bool same_element(const Literal& a, const Literal& b, int64_t i) {
  if (is_exact(a.type())) return a.as_int(i) == b.as_int(i);
  return error_of(a.as_double(i), b.as_double(i)) == 0 && error_of(a.imaginary(i), b.imaginary(i)) == 0;
}

/// Returns the values of the elements `which`, in ascending order, NaN last.
std::vector<std::pair<double, double>> sorted(const Literal& value, const std::vector<int64_t>& which) {
  std::vector<std::pair<double, double>> out;
  for (int64_t i : which) out.emplace_back(value.as_double(i), value.imaginary(i));
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    if (std::isnan(a.first) || std::isnan(b.first)) return !std::isnan(a.first) && std::isnan(b.first);
    return a < b;
  });
  return out;
}

bool is_permutation(const Literal& a, const Literal& b, const std::vector<int64_t>& which) {
  return !which.empty() && sorted(a, which) == sorted(b, which);
}

/// Returns the elements that two runs with different choices do not determine. If the differing elements of both are
/// the same values in another order, these are all differing elements. Otherwise they are elements of exact types that
/// differ, and floats of which exactly one is finite.
std::vector<int64_t> open_elements(const Literal& a, const Literal& b, double allowed) {
  std::vector<int64_t> differing, undefined;
  if (!a.shape().same_dims(b.shape())) return {};
  for (int64_t i = 0; i < a.element_count(); ++i) {
    if (same_element(a, b, i)) continue;
    const bool exact = is_exact(a.type());
    if (exact || std::fabs(a.as_double(i) - b.as_double(i)) > allowed) differing.push_back(i);
    if (exact || std::isfinite(a.as_double(i)) != std::isfinite(b.as_double(i))) undefined.push_back(i);
  }
  return is_permutation(a, b, differing) ? differing : undefined;
}

/// True if element `i` is not padding of a dynamic dimension.
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

Agreement agrees_with_index(const Literal& expected, const Literal& got, const Variants& variants) {
  if (!got.valid() || !got.shape().compatible(expected.shape()))
    return refusal("the result is " + got.shape().to_string() + ", expected " + expected.shape().to_string());
  const double plain = is_exact(expected.type()) ? 0 : index_tolerance(expected.type(), largest_finite(expected));
  double allowed = plain;
  std::vector<int64_t> open;
  if (variants.reference) {
    if (variants.wide) allowed = std::max(allowed, 4 * distance(*variants.reference, *variants.wide));
    if (variants.other) {
      open = open_elements(*variants.reference, *variants.other, allowed);
      if (!is_permutation(*variants.reference, *variants.other, open))
        allowed = std::max(allowed, 4 * distance(*variants.reference, *variants.other));
    }
  }
  Comparer judge(allowed);
  size_t next = 0;
  for (int64_t i = 0; i < expected.element_count(); ++i) {
    const bool is_open = next < open.size() && open[next] == i;
    next += is_open;
    if (!is_open && is_inside(got, i)) judge.see(expected, i, got, i);
  }
  Agreement result = judge.result(expected.element_count());
  if (result.agrees && !open.empty() && is_permutation(*variants.reference, *variants.other, open) &&
      !is_permutation(expected, got, open))
    return refusal("the " + std::to_string(open.size()) + " elements that may stand in any order are not the same set");
  if (!result.agrees) return result;
  if (!open.empty()) result.detail = std::to_string(open.size()) + " elements are not determined by the module";
  if (allowed > plain)
    result.detail += (open.empty() ? "" : "; ") + ("within " + number(allowed)) + " instead of " + number(plain) +
                     ", as the module is conditioned";
  return result;
}

Agreement agrees_with_index(std::span<const Literal> expected, std::span<const Literal> got,
                            const VariantLists& variants) {
  if (expected.size() != got.size())
    return refusal("there are " + std::to_string(got.size()) + " results, expected " + std::to_string(expected.size()));
  const auto pick = [](std::span<const Literal> list, size_t k) { return k < list.size() ? &list[k] : nullptr; };
  Agreement all;
  for (size_t k = 0; k < expected.size(); ++k) {
    const Agreement one = agrees_with_index(
        expected[k], got[k], {pick(variants.reference, k), pick(variants.wide, k), pick(variants.other, k)});
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
    allowed = as_f64 ? kWideError * expected.max_abs
                     : std::max(4 * expected.xla_max_abs_error, 8 * ulp_at(expected.shape.type(), expected.max_abs));
  Comparer judge(allowed);
  for (int64_t i = 0; i < expected.sample.element_count(); ++i) judge.see(expected.sample, i, got, i * expected.stride);
  return judge.result(expected.sample.element_count());
}

}  // namespace collet::hlo::testing
