// SPDX-License-Identifier: Apache-2.0
#include "hlo/testing/equivalence.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "hlo/base/float_format.h"
#include "hlo/testing/inputs.h"

namespace collet::hlo::testing {
namespace {

Literal inputs_for(const Shape& shape, uint64_t& next) {
  if (!shape.is_tuple()) return input_by_rule({}, shape, next++);
  std::vector<Literal> elements;
  for (const Shape& element : shape.elements()) elements.push_back(inputs_for(element, next));
  return Literal::tuple(std::move(elements));
}

void flatten_into(const Literal& value, std::vector<Literal>& out) {
  if (!value.shape().is_tuple()) {
    out.push_back(value);
    return;
  }
  for (const Literal& element : value.elements()) flatten_into(element, out);
}

double bound_of(Type type, const Tolerance& tolerance) {
  switch (type) {
    case Type::F64:
    case Type::C128:
      return tolerance.wide;
    case Type::F32:
    case Type::C64:
      return tolerance.single;
    default: {
      const FloatFormat format = float_format(static_cast<uint32_t>(type));
      return std::max(4 * tolerance.narrow * std::ldexp(1.0, -format.mantissa_bits - 1), tolerance.single);
    }
  }
}

// True if element `i`, in row-major order, is within the dynamic sizes of both.
bool in_use(const Literal& a, const Literal& b, int64_t i) {
  const Shape& shape = a.shape();
  for (int d = shape.rank(); d-- > 0; i /= shape.dim(d))
    for (const Literal* value : {&a, &b}) {
      const auto sizes = value->dynamic_sizes();
      if (!sizes.empty() && i % shape.dim(d) >= sizes[static_cast<size_t>(d)]) return false;
    }
  return true;
}

std::string leaf_difference(const Literal& a, const Literal& b, const Tolerance& tolerance) {
  if (!a.shape().compatible(b.shape())) return a.shape().to_string() + " and " + b.shape().to_string();
  if (!a.shape().is_array()) return {};
  const Type type = a.type();
  const bool exact = !is_float(type) && !is_complex(type);
  const int64_t n = a.element_count();
  double largest = 0;
  const auto part = [](const Literal& l, int64_t i, bool imaginary) {
    return imaginary ? l.imaginary(i) : l.as_double(i);
  };
  for (int64_t i = 0; i < n; ++i)
    for (bool imaginary : {false, true})
      if (const double v = part(a, i, imaginary); std::isfinite(v)) largest = std::max(largest, std::abs(v));
  // For subnormal numbers the distance between neighbours is not small relative to the value.
  const FloatFormat format = float_format(static_cast<uint32_t>(real_type(type)));
  const double step = exact ? 0 : std::ldexp(1.0, 1 - format.bias - format.mantissa_bits);
  const double bound = bound_of(type, tolerance) * largest + 8 * step;
  const bool dynamic = !a.dynamic_sizes().empty() || !b.dynamic_sizes().empty();
  double worst = 0;
  int64_t where = -1;
  for (int64_t i = 0; i < n; ++i) {
    if (dynamic && !in_use(a, b, i)) continue;
    if (exact) {
      if (a.as_int(i) == b.as_int(i)) continue;
      worst = INFINITY;
      where = i;
      break;
    }
    for (bool imaginary : {false, true}) {
      const double x = part(a, i, imaginary), y = part(b, i, imaginary);
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      const double error = std::isfinite(x) && std::isfinite(y) ? std::abs(x - y) : INFINITY;
      if (error > bound && error > worst) {
        worst = error;
        where = i;
      }
    }
  }
  if (where < 0) return {};
  std::ostringstream out;
  out.precision(17);
  out << a.shape().to_string() << " element " << where << ": " << a.as_double(where) << " and " << b.as_double(where)
      << ", bound " << bound;
  return out.str();
}

}  // namespace

std::vector<Literal> entry_inputs(const Module& module) {
  std::vector<Literal> out;
  uint64_t next = 0;
  for (InstrId p : module.entry_computation().parameters) out.push_back(inputs_for(module[p].shape, next));
  return out;
}

std::string difference(const Literal& a, const Literal& b, const Tolerance& tolerance) {
  std::vector<Literal> x, y;
  flatten_into(a, x);
  flatten_into(b, y);
  if (x.size() != y.size()) return std::to_string(x.size()) + " and " + std::to_string(y.size()) + " arrays";
  for (size_t i = 0; i < x.size(); ++i)
    if (std::string text = leaf_difference(x[i], y[i], tolerance); !text.empty())
      return "result " + std::to_string(i) + ": " + text;
  return {};
}

}  // namespace collet::hlo::testing
