// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "conformance/cases/case.h"
#include "hlo/base/float_format.h"
#include "hlo/base/hash.h"

namespace collet::conformance {
namespace {

using namespace collet::hlo;

class Random {
 public:
  explicit Random(uint64_t seed) : state_(mix(seed)) {}
  uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15); }
  uint64_t below(uint64_t n) { return n == 0 ? 0 : next() % n; }
  /// Returns a number in [0, 1).
  double unit() { return std::ldexp(static_cast<double>(next() >> 11), -53); }

 private:
  uint64_t state_;
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Returns the special values as doubles. A value that the type cannot represent is rounded, so some values repeat.
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
  if (bits >= 32) edges.insert(edges.end(), {0xFFFF, 0x10000, 0x7FFFFFFE, 0x80000001});
  if (bits == 64) {
    constexpr int64_t kWord = int64_t{1} << 32;
    edges.insert(edges.end(), {kWord / 2 - 1, kWord / 2, kWord - 1, kWord, kWord + 1, -kWord / 2 - 1, -kWord - 1});
  }
  return edges;
}

// Magnitudes at which elementary functions overflow, underflow, saturate or become inaccurate; limits of integer types;
// ties of narrower floats, of their denormals and of their largest numbers.
constexpr double kCritical[] = {
    // overflow and underflow of exp, expm1, logistic, sinh, cosh of f16, f32 and f64; tanh and erf saturate at 1
    9.7040605, 11.0898663, 16.6355324, 17.3286795, 86.5, 87.3365448, 88.0296919, 88.7228391, 89.4159863, 89.0, 102.5,
    103.2789302, 103.9720764, 104.5, 708.3964185322641, 709.782712893384, 710.4758600739439, 744.4400719213812,
    745.1332191019412, 746.0, 2.6, 3.9192059, 4.5, 5.8635847, 9.0109129, 19.0615475, 1e-3, 1e-5, 1e-8, 1e-17,
    // ties and limits of rounding to integers
    0.5, 1.5, 2.5, 1023.5, 1024.5, 2047.5, 4194303.5, 4194304.5, 8388607.5, 8388608.5, 16777217.0, 4503599627370495.5,
    4503599627370496.5,
    // limits of integer types
    1.0, 2.0, 3.0, 7.5, 8.0, 15.5, 16.0, 127.0, 127.5, 128.0, 255.5, 256.0, 32767.5, 32768.0, 65535.5, 65536.0,
    2147483647.5, 2147483648.0, 4294967295.5, 4294967296.0, 9223372036854775808.0, 18446744073709551616.0,
    // ties of f8, bf16, f16 and f32 at 1
    0x1.1p0, 0x1.3p0, 0x1.2p0, 0x1.6p0, 0x1.01p0, 0x1.03p0, 0x1.002p0, 0x1.006p0, 0x1.000001p0, 0x1.000003p0,
    // their largest numbers, and numbers that round to these or overflow
    448, 464, 480, 57344, 61440, 65504, 65519, 65520, 65535, 0x1.fep127, 0x1.ffp127, 0x1.fffffep127, 0x1.ffffffp127,
    // their denormals
    0x1p-9, 0x1p-10, 0x1.8p-10, 0x1p-16, 0x1p-17, 0x1.8p-17, 0x1p-14, 0x1p-24, 0x1p-25, 0x1.8p-25, 0x1p-126, 0x1p-133,
    0x1p-134, 0x1.8p-134, 0x1p-149, 0x1p-150, 0x1.8p-150, 0x1p-1022,
    // small and large angles
    0.7853981633974483, 1.5707963267948966, 3.141592653589793, 4.71238898038469, 6.283185307179586, 22, 355,
    31.41592653589793, 3141.592653589793, 1e5, 1e6, 1e10, 1e15, 1e22, 1e30, 0x1p100};

// Returns each critical value with its neighbours in the type and both signs, and zeros, infinities and NaN. Values
// that the type cannot represent are rounded, so some repeat.
std::vector<double> critical_floats(Type type, bool flushes) {
  const FloatFormat format = float_format(static_cast<uint32_t>(real_type(type)));
  const double normal = std::ldexp(1.0, 1 - format.bias);
  std::vector<double> out = float_edges(type, flushes);
  // Several NaNs, to which vary_nan gives different bits.
  if (format.specials == FloatSpecials::IEEE) out.insert(out.end(), 4, std::numeric_limits<double>::quiet_NaN());
  for (const double magnitude : kCritical) {
    const double value = decode_float(format, encode_float(format, magnitude));
    if (!std::isfinite(value)) continue;
    const double step = std::ldexp(1.0, (value < normal ? 1 - format.bias : std::ilogb(value)) - format.mantissa_bits);
    for (const double near : {value, value - step, value + step}) {
      if (flushes && std::fabs(near) < normal) continue;
      out.push_back(near);
      if (format.specials != FloatSpecials::E8M0) out.push_back(-near);
    }
  }
  return out;
}

// Returns powers of two and their neighbours, and numbers at, below and above a tie of f16, bf16, f32 and f64.
std::vector<int64_t> critical_integers(Type type) {
  std::vector<int64_t> out = integer_edges(type);
  const auto add = [&](uint64_t value) {
    for (const uint64_t near : {value, value - 1, value + 1}) {
      out.push_back(static_cast<int64_t>(near));
      out.push_back(static_cast<int64_t>(0 - near));
    }
  };
  const int bits = type_info(type).bits;
  for (int k = 2; k < bits; ++k) add(uint64_t{1} << k);
  for (const int digits : {8, 11, 24, 53})
    for (int k = 0; digits + 1 + k <= bits; ++k)
      for (const uint64_t odd : {1, 3}) add(((uint64_t{1} << digits) + odd) << k);
  return out;
}

int64_t edges_of_one(Type type) {
  if (type == Type::PRED) return 2;
  return static_cast<int64_t>(is_integer(type) ? integer_edges(type).size() : float_edges(type, false).size());
}

// Sets all bits of a NaN's mantissa, or only the lowest one, with either sign: rounding and comparing by bits often
// fail for these. Some NaNs stay unchanged.
void vary_nan(Literal& value, int64_t index, int number) {
  const Type type = value.type();
  const int kind = number % 5;
  if (kind == 0 || is_complex(type) || float_format(static_cast<uint32_t>(type)).specials != FloatSpecials::IEEE)
    return;
  const auto bytes = static_cast<size_t>(type_info(type).bits / 8);
  uint8_t* at = value.mutable_bytes() + static_cast<size_t>(index) * bytes;
  if (kind < 3) {
    std::memset(at, 0xff, bytes);
    if (kind == 1) at[bytes - 1] = 0x7f;
    return;
  }
  // All bits of the exponent, and the last bit of the mantissa: a signalling NaN.
  const uint64_t infinity = encode_float(float_format(static_cast<uint32_t>(type)), kInfinity);
  const uint64_t bits = infinity | 1 | (kind == 4 ? uint64_t{1} << (bytes * 8 - 1) : 0);
  std::memcpy(at, &bits, bytes);
}

void fill_edges(Literal& value, size_t number, size_t count, uint64_t seed, bool flushes) {
  const Type type = value.type();
  const bool integer = is_integer(type) || type == Type::PRED;
  const std::vector<int64_t> integers = type == Type::PRED ? std::vector<int64_t>{0, 1}
                                        : integer          ? integer_edges(type)
                                                           : std::vector<int64_t>{};
  const std::vector<double> floats = integer ? std::vector<double>{} : float_edges(type, flushes);
  const size_t n = integer ? integers.size() : floats.size();
  // The first two operands take all pairs of values; further operands are random.
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

// Complex numbers near poles, zeros and points of cancellation: multiples of pi / 2 on both axes, and the unit circle,
// at distances from 1 down to 2^-20.
void fill_critical_complex(Literal& value, uint64_t seed) {
  Random random(seed);
  for (int64_t i = 0; i < value.element_count(); ++i) {
    const auto near = [&] {
      const double size = std::ldexp(0.5 + random.unit() / 2, -static_cast<int>(random.below(21)));
      return random.next() & 1 ? -size : size;
    };
    const double on_axis = (static_cast<double>(random.below(9)) - 4) * std::numbers::pi / 2 + near(), off = near();
    const double angle = std::numbers::pi * (2 * random.unit() - 1), radius = 1 + near() / 2;
    if (i % 3 == 0) {
      value.set_double(i, off, on_axis);
    } else if (i % 3 == 1) {
      value.set_double(i, on_axis, off);
    } else {
      value.set_double(i, radius * std::cos(angle), radius * std::sin(angle));
    }
  }
}

// A single operand takes all values; for several operands each value is drawn at random.
void fill_critical(Literal& value, size_t count, uint64_t seed, bool flushes) {
  const Type type = value.type();
  if (is_complex(type)) return fill_critical_complex(value, seed);
  const bool integer = is_integer(type) || type == Type::PRED;
  const std::vector<int64_t> integers = integer ? critical_integers(type) : std::vector<int64_t>{};
  const std::vector<double> floats = integer ? std::vector<double>{} : critical_floats(type, flushes);
  const size_t n = integer ? integers.size() : floats.size();
  Random random(seed);
  int nans = 0;
  for (int64_t i = 0; i < value.element_count(); ++i) {
    const size_t at = count > 1 ? random.below(n) : static_cast<size_t>(i) % n;
    if (integer) {
      value.set_int(i, integers[at]);
    } else {
      value.set_double(i, floats[at]);
      if (std::isnan(floats[at])) vary_nan(value, i, ++nans);
    }
  }
}

constexpr int64_t kStrata = int64_t{1} << 20;

// Elements narrower than a byte are stored in a byte, sign- or zero-extended by set_int.
void fill_all(Literal& value, size_t number, uint64_t seed, bool flushes) {
  const Type type = value.type();
  const int bits = type_info(type).bits;
  Random random(seed);
  const uint64_t patterns = uint64_t{1} << std::min(bits, 16);
  const bool is_narrow_float = is_float(type);
  const FloatFormat format = is_narrow_float ? float_format(static_cast<uint32_t>(type)) : FloatFormat{};
  for (int64_t i = 0; i < value.element_count(); ++i) {
    const auto at = static_cast<uint64_t>(i);
    uint64_t pattern = (number == 0 ? at : at / patterns) % patterns;
    if (bits > 16) {
      const uint64_t mantissa = random.next() & ((uint64_t{1} << format.mantissa_bits) - 1);
      pattern = (at % (uint64_t{2} << format.exponent_bits)) << format.mantissa_bits | mantissa;
    }
    if (!is_narrow_float) {
      value.set_int(i, static_cast<int64_t>(pattern));
    } else if (const double x = decode_float(format, pattern);
               flushes && x != 0 && std::fabs(x) < std::ldexp(1.0, 1 - format.bias)) {
      value.set_double(i, 0);
    } else if (bits < 8) {
      value.set_double(i, x);
    } else {
      std::memcpy(value.mutable_bytes() + static_cast<size_t>(i) * static_cast<size_t>(bits / 8), &pattern,
                  static_cast<size_t>(bits / 8));
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
        // A random number, or sometimes a limit of the range or its neighbour.
        const uint64_t drawn = random.next();
        const int bits = type_info(type).bits;
        const auto least = static_cast<int64_t>(is_signed(type) ? ~uint64_t{0} << (bits - 1) : 0);
        value.set_int(i, static_cast<int64_t>(i % 13 == 5   ? static_cast<uint64_t>(least)
                                              : i % 13 == 9 ? static_cast<uint64_t>(least) - 1
                                                            : drawn));
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

// Puts the given numbers, each in turn, at random places of drawn ones. They are few, so that most sums and rows have none.
void fill_special(Literal& value, const InputSpec& spec, uint64_t seed) {
  constexpr int64_t kMost = 9, kElementsForOne = 8;
  fill_drawn(value, spec, seed);
  const int64_t count = value.element_count();
  if (count < 2 || spec.fixed.empty()) return;
  Random random(mix(seed));
  for (int64_t i = 0; i < std::clamp<int64_t>(count / kElementsForOne, 1, kMost); ++i)
    value.set_double(static_cast<int64_t>(random.below(static_cast<uint64_t>(count))),
                     spec.fixed[static_cast<size_t>(i) % spec.fixed.size()]);
}

// Replaces A by (A + A^H) / 8 with 2 added on the diagonal, which is diagonally dominant for the small sizes of the
// cases.
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
  constexpr std::string_view kNames[] = {"unit", "edges",    "large", "ties",   "distinct",
                                         "all",  "critical", "fixed", "special"};
  return kNames[static_cast<size_t>(values)];
}

int64_t edge_count(Type type, size_t operands) {
  const int64_t n = edges_of_one(type);
  return operands == 1 ? n : operands == 2 ? n * n : 1000;
}

int64_t all_count(Type type, size_t operands) {
  const int bits = type_info(type).bits;
  if (type == Type::PRED || is_complex(type)) return 0;
  if (operands == 1 && bits > 16) return is_float(type) ? kStrata : 0;
  if (operands > 2 || static_cast<int>(operands) * bits > 16) return 0;
  return int64_t{1} << (static_cast<int>(operands) * bits);
}

int64_t critical_count(Type type) {
  const bool integer = is_integer(type) || type == Type::PRED;
  return static_cast<int64_t>(integer ? critical_integers(type).size() : critical_floats(type, false).size());
}

// FNV-1a, as ever: with another hash the same seed would mean other inputs, and bundles of earlier runs could not be verified.
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
    case Values::All:
      fill_all(value, number, own, flushes);
      break;
    case Values::Critical:
      fill_critical(value, count, own, flushes);
      break;
    case Values::Distinct:
      fill_distinct(value, own);
      break;
    case Values::Fixed:
      fill_fixed(value, spec.fixed);
      break;
    case Values::Special:
      fill_special(value, spec, own);
      break;
    default:
      fill_drawn(value, spec, own);
  }
  if (spec.definite) make_definite(value);
  return value;
}

}  // namespace collet::conformance
