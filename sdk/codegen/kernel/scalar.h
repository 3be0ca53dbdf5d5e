// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <span>

/// \file
/// Evaluates elementwise ops on single elements, for the evaluator of kernels and for tests.

namespace collet::codegen {

/// The bits of an element: its bytes in memory are the lowest bytes, and the others are zero.
using Element = std::array<uint64_t, 2>;

/// Returns the maximum of IEEE 754: NaN if an operand is NaN, and -0 is less than +0.
template <typename T>
T ieee_maximum(T x, T y) {
  if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<T>::quiet_NaN();
  if (x == y) return std::signbit(x) ? y : x;
  return x > y ? x : y;
}
/// Returns the minimum of IEEE 754, with the same rules as ieee_maximum.
template <typename T>
T ieee_minimum(T x, T y) {
  return -ieee_maximum(-x, -y);
}

/// One elementwise computation, as an expression of a kernel states it.
struct ElementOp {
  uint32_t opcode = 0;
  uint32_t type = 0;                ///< element type of the result
  std::span<const uint32_t> types;  ///< element types of the operands
  std::span<const Element> args;
  int64_t a = 0;  ///< comparison direction, or exponent bits of reduce-precision
  int64_t b = 0;  ///< comparison type, or mantissa bits of reduce-precision
};

/// Computes an op and stores the result in `out`. Exact ops and conversions round once; others are computed with more
/// bits than the type has. Floats narrower than f32 are computed as f32 and then rounded. Returns false if there is no
/// such op for these types.
bool evaluate_element(const ElementOp& op, Element& out);

/// Returns the value of an element of a real type.
long double real_of_element(uint32_t type, const Element& x);
/// Returns `x` rounded to a float type, or truncated and saturated to an integer type.
Element element_of_real(uint32_t type, long double x);
/// Returns the value of an integer, sign-extended if its type is signed, or of a pred.
int64_t integer_of_element(uint32_t type, const Element& x);
/// Returns the lowest bits as an element of an integer type. For pred, returns whether any bit is set.
Element element_of_integer(uint32_t type, uint64_t bits);
/// Returns the value of an element of a complex type, or of a float type with an imaginary part of zero.
std::complex<long double> complex_of_element(uint32_t type, const Element& x);
Element element_of_complex(uint32_t type, std::complex<long double> x);

}  // namespace collet::codegen
