// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "conformance/cases/case.h"
#include "hlo/base/float_format.h"

namespace collet::conformance {
namespace {

using namespace collet::hlo;

uint64_t mix(uint64_t z) {
  z += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(mix(seed)) {}
  uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15); }
  uint64_t below(uint64_t n) { return n == 0 ? 0 : next() % n; }
  /// In [0, 1).
  double unit() { return std::ldexp(static_cast<double>(next() >> 11), -53); }

 private:
  uint64_t state_;
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// As doubles; what the type cannot hold is rounded, which repeats a value or two.
std::vector<double> float_edges(Type type, bool flushes) {
  const FloatFormat format = float_format(static_cast<uint32_t>(real_type(type)));
  const double normal = std::ldexp(1.0, 1 - format.bias), largest = largest_finite(type);
  const double epsilon = std::ldexp(1.0, -format.mantissa_bits), denormal = normal * epsilon;
  std::vector<double> edges = {0.0,
                               -0.0,
                               1.0,
                               -1.0,
                               0.5,
                               -0.5,
                               1.5,
                               -2.5,
                               2.0,
                               1 + epsilon,
                               1 - epsilon / 2,
                               normal,
                               -normal,
                               largest,
                               -largest,
                               std::numbers::pi / 2,
                               -std::numbers::pi,
                               std::numbers::e,
                               10.0};
  if (format.specials != FloatSpecials::FINITE) edges.push_back(std::numeric_limits<double>::quiet_NaN());
  if (format.specials == FloatSpecials::IEEE) edges.insert(edges.end(), {kInfinity, -kInfinity});
  if (!flushes) edges.insert(edges.end(), {denormal, -denormal, normal - denormal});
  return edges;
}

std::vector<int64_t> integer_edges(Type type) {
  const int bits = type_info(type).bits;
  const bool sign = is_signed(type);
  const int64_t low = sign ? (bits == 64 ? INT64_MIN : -(int64_t{1} << (bits - 1))) : 0;
  const int64_t high =
      sign ? (bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1) : (bits == 64 ? -1 : (int64_t{1} << bits) - 1);
  std::vector<int64_t> edges = {0, 1, 2, 3, low, low + 1, high, high - 1, high / 2, bits - 1, bits, bits + 1};
  if (sign) edges.insert(edges.end(), {-1, -2, -3});
  return edges;
}

int64_t edges_of_one(Type type) {
  if (type == Type::PRED) return 2;
  return static_cast<int64_t>(is_integer(type) ? integer_edges(type).size() : float_edges(type, false).size());
}

// Gives a NaN of an IEEE type all of its mantissa, either sign: rounding and comparing by bits go wrong there first. Every third
// one stays as it is.
void vary_nan(Literal& value, int64_t index, int number) {
  const Type type = value.type();
  if (number % 3 == 0 || is_complex(type) || float_format(static_cast<uint32_t>(type)).specials != FloatSpecials::IEEE)
    return;
  const auto bytes = static_cast<size_t>(type_info(type).bits / 8);
  uint8_t* at = value.mutable_bytes() + static_cast<size_t>(index) * bytes;
  std::memset(at, 0xff, bytes);
  if (number % 3 == 1) at[bytes - 1] = 0x7f;
}

void fill_edges(Literal& value, size_t number, size_t count, uint64_t seed, bool flushes) {
  const Type type = value.type();
  const bool integer = is_integer(type) || type == Type::PRED;
  const std::vector<int64_t> integers = type == Type::PRED ? std::vector<int64_t>{0, 1}
                                        : integer          ? integer_edges(type)
                                                           : std::vector<int64_t>{};
  const std::vector<double> floats = integer ? std::vector<double>{} : float_edges(type, flushes);
  const size_t n = integer ? integers.size() : floats.size();
  // The first two operands walk over all pairs, further ones are drawn.
  Random random(seed);
  int nans = 0;
  for (int64_t i = 0; i < value.element_count(); ++i) {
    size_t at = static_cast<size_t>(i);
    if (count > 2) {
      at = random.below(n);
    } else if (number == 1) {
      at /= n;
    }
    at %= n;
    if (integer) {
      value.set_int(i, integers[at]);
    } else {
      value.set_double(i, floats[at], is_complex(type) ? floats[random.below(n)] : 0);
      if (std::isnan(floats[at])) vary_nan(value, i, ++nans);
    }
  }
}

double drawn_over_range(Random& random, Type type) {
  const FloatFormat format = float_format(static_cast<uint32_t>(real_type(type)));
  const int low = 1 - format.bias, high = std::ilogb(largest_finite(type));
  const double exponent = low + random.unit() * (high - low);
  const double magnitude = std::exp2(exponent) * (1 + random.unit() / 2);
  return random.next() & 1 ? -magnitude : magnitude;
}

double drawn_unit(Random& random, const InputSpec& spec) {
  return spec.low + random.unit() * (spec.high - spec.low);
}

double drawn_tie(Random& random) {
  return (static_cast<double>(random.below(13)) - 6) / 2;
}

void fill_drawn(Literal& value, const InputSpec& spec, uint64_t seed) {
  Random random(seed);
  const Type type = value.type();
  for (int64_t i = 0; i < value.element_count(); ++i) {
    if (type == Type::PRED) {
      value.set_int(i, static_cast<int64_t>(random.next() >> 63));
    } else if (is_integer(type)) {
      if (spec.values == Values::Large) {
        value.set_int(i, static_cast<int64_t>(random.next()));
      } else if (spec.values == Values::Ties) {
        value.set_int(i, static_cast<int64_t>(random.below(4)) - (is_signed(type) ? 2 : 0));
      } else {
        const double low = is_unsigned(type) ? std::max(0.0, spec.low) : spec.low;
        const auto span = static_cast<uint64_t>(std::max(0.0, spec.high - low)) + 1;
        value.set_int(i, static_cast<int64_t>(low) + static_cast<int64_t>(random.below(span)));
      }
    } else {
      const auto draw = [&] {
        return spec.values == Values::Large  ? drawn_over_range(random, type)
               : spec.values == Values::Ties ? drawn_tie(random)
                                             : drawn_unit(random, spec);
      };
      const double real = draw();
      value.set_double(i, real, is_complex(type) ? draw() : 0);
    }
  }
}

void fill_distinct(Literal& value, uint64_t seed) {
  const auto n = static_cast<size_t>(value.element_count());
  std::vector<int64_t> order(n);
  for (size_t i = 0; i < n; ++i) order[i] = static_cast<int64_t>(i);
  Random random(seed);
  for (size_t i = n; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  const bool sign = !is_unsigned(value.type());
  for (size_t i = 0; i < n; ++i) {
    const int64_t centred = order[i] - (sign ? static_cast<int64_t>(n / 2) : 0);
    if (is_integer(value.type()) || value.type() == Type::PRED) {
      value.set_int(static_cast<int64_t>(i), centred);
    } else {
      value.set_double(static_cast<int64_t>(i), static_cast<double>(centred) / 8);
    }
  }
}

void fill_fixed(Literal& value, const std::vector<double>& fixed) {
  for (int64_t i = 0; i < value.element_count(); ++i) {
    const double number = fixed[static_cast<size_t>(i) % fixed.size()];
    if (is_integer(value.type())) {
      value.set_int(i, static_cast<int64_t>(number));
    } else {
      value.set_double(i, number);
    }
  }
}

// (A + A^H) / 8, with 2 on the diagonal on top: diagonally dominant for the small sizes of the cases.
void make_definite(Literal& value) {
  const Shape& shape = value.shape();
  const int64_t n = shape.dim(shape.rank() - 1);
  const Literal drawn = Literal::from_bytes(shape, value.bytes());
  for (int64_t base = 0; n > 0 && base < value.element_count(); base += n * n) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const int64_t at = base + i * n + j, across = base + j * n + i;
        const double real =
            (drawn.as_double(at) + drawn.as_double(across)) / 8 + (i == j ? 2 + static_cast<double>(n) / 4 : 0);
        value.set_double(at, real, (drawn.imaginary(at) - drawn.imaginary(across)) / 8);
      }
    }
  }
}

}  // namespace

std::string_view values_name(Values values) {
  constexpr std::string_view kNames[] = {"unit", "edges", "large", "ties", "distinct", "fixed"};
  return kNames[static_cast<size_t>(values)];
}

int64_t edge_count(Type type, size_t operands) {
  const int64_t n = edges_of_one(type);
  return operands == 1 ? n : operands == 2 ? n * n : 1000;
}

uint64_t case_seed(std::string_view name, uint64_t run_seed) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return mix(hash ^ mix(run_seed));
}

Literal make_input(const InputSpec& spec, const Shape& shape, size_t number, size_t count, uint64_t seed,
                   bool flushes) {
  Literal value = Literal::zeros(shape);
  const uint64_t own = mix(seed + number);
  switch (spec.values) {
    case Values::Edges:
      fill_edges(value, number, count, own, flushes);
      break;
    case Values::Distinct:
      fill_distinct(value, own);
      break;
    case Values::Fixed:
      fill_fixed(value, spec.fixed);
      break;
    default:
      fill_drawn(value, spec, own);
  }
  if (spec.definite) make_definite(value);
  return value;
}

}  // namespace collet::conformance
