// SPDX-License-Identifier: Apache-2.0
#include "conformance/accuracy/ruler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "hlo/base/float_format.h"

namespace collet::conformance {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kBias = 1023, kFraction = 52;

// Returns 2^n, which must be a normal number.
double power_of_two(int n) {
  return std::bit_cast<double>(static_cast<uint64_t>(n + kBias) << kFraction);
}

int exponent_of(double x) {
  return static_cast<int>((std::bit_cast<uint64_t>(x) >> kFraction) & 0x7FF) - kBias;
}

}  // namespace

Ruler::Ruler(hlo::Type type) {
  const FloatFormat format = float_format(static_cast<uint32_t>(type));
  digits_ = format.mantissa_bits + 1;
  least_exponent_ = 1 - format.bias;
  beyond_ = power_of_two(format.bias + 1);
}

double Ruler::error(double exact, double got, double rest) const {
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) && std::isnan(got) ? 0 : kInfinity;
  if (std::signbit(exact) != std::signbit(got) && (exact == 0 || got == 0 || std::isinf(got))) return kInfinity;
  if (exact == got && rest == 0) return 0;
  if (std::isinf(exact)) return kInfinity;
  const double x = std::clamp(exact, -beyond_, beyond_), y = std::clamp(got, -beyond_, beyond_);
  // For the power of two above the largest finite value, the ULP is that of the values below it.
  const int exponent = std::clamp(exponent_of(x), least_exponent_, exponent_of(beyond_) - 1);
  return std::fabs((y - x) - rest) * power_of_two(digits_ - 1 - exponent);
}

}  // namespace collet::conformance
