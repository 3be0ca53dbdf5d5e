// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <span>

/// \file
/// Elementwise ops on single elements: what the values of kernels are, for the evaluator and for tests.

namespace collet::codegen {

/// An element, as it is in memory: its bytes are the lowest, those above are zero.
using Element = std::array<uint64_t, 2>;

/// The larger number, as IEEE 754 has it: what is not a number wins; -0 is less than +0.
template <typename T>
T ieee_maximum(T x, T y) {
  if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<T>::quiet_NaN();
  if (x == y) return std::signbit(x) ? y : x;
  return x > y ? x : y;
}
/// The smaller one.
template <typename T>
T ieee_minimum(T x, T y) {
  return -ieee_maximum(-x, -y);
}

/// One elementwise computation, as an expression of a kernel states it.
struct ElementOp {
  uint32_t opcode = 0;
  uint32_t type = 0;                ///< of the result
  std::span<const uint32_t> types;  ///< of the operands
  std::span<const Element> args;
  int64_t a = 0;  ///< comparison direction; exponent bits of reduce-precision
  int64_t b = 0;  ///< comparison type; mantissa bits
};

/// The result in `out`: exact ops and conversions with a single rounding, others computed with more bits than the type
/// has. Floats narrower than f32 are computed as f32 and rounded. False where there is no such op for these types.
bool evaluate_element(const ElementOp& op, Element& out);

/// The number that an element of a real type is.
long double real_of_element(uint32_t type, const Element& x);
/// A number rounded to a float type, or cut off and saturated to an integer type.
Element element_of_real(uint32_t type, long double x);
/// An integer or a pred, extended to 64 bits by its sign.
int64_t integer_of_element(uint32_t type, const Element& x);
/// The lowest bits as an element of an integer type, or a pred that says whether they are not all zero.
Element element_of_integer(uint32_t type, uint64_t bits);
/// An element of a complex type, or of a float type with an imaginary part of zero.
std::complex<long double> complex_of_element(uint32_t type, const Element& x);
Element element_of_complex(uint32_t type, std::complex<long double> x);

}  // namespace collet::codegen
