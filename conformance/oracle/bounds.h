// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "hlo/ir/literal.h"

/// \file
/// The allowed errors of results, and the comparison of results with expected ones. Each bound has a derivation: a
/// number of ULP for an elementary function, and Higham's gamma(n) times the sum of magnitudes for sums and products.

namespace collet::conformance {

/// The error that is allowed for the results of a case.
struct Bound {
  enum class Kind : uint8_t {
    Bits,   ///< equal bytes: for data movement
    Exact,  ///< equal values; NaN equals NaN, and zeros must have the same sign
    Ulp,    ///< within `ulps` ULP of the exact result (f16, bf16 and narrower: of the once-rounded result)
    Sum,    ///< within gamma(terms) * magnitude of each element
    Scaled  ///< within `ulps` ULP of the output's largest magnitude: for factorizations and transforms
  };
  Kind kind = Kind::Exact;
  double ulps = 0;
  double terms = 1;
  /// True: sums of 16-bit types are accumulated in at least f32, as matrix products are. False: in the type of the
  /// result.
  bool wide = true;
  /// True if the first operand selects what is summed (select-and-scatter): the magnitude is then computed from the
  /// absolute values of the other operands only.
  bool signed_data = false;
  /// True: compares with the results of the program in f64, as for Sum, for programs whose intermediate results may
  /// have more precision than their types.
  bool exact = false;
  /// For Ulp of complex numbers: also allows the change that operands which are one ULP off would cause, even if that
  /// exceeds one ULP of the modulus.
  bool conditioned = false;
  /// 0: all elements are compared; 1: only the upper, -1: only the lower triangle of the last two dimensions.
  int triangle = 0;
  /// For Sum: the relative error of each product by the rounding of its operands, and the unit roundoff of the additions if it is larger
  /// than that of the type: what an algorithm of a matrix product asks for.
  double operands = 0, additions = 0;
};

/// The expected values of one output, and the data from which the allowed error is computed.
struct Reference {
  hlo::Literal value = {};  ///< the values in the output's type, rounded once
  hlo::Literal exact =
      {};  ///< f64 or c128, for Sum and `exact`, and for functions of f32, f64, c64 and c128; may be invalid
  /// For Sum: the result of the same program on absolute values, f64; for exact sums of complex numbers that of each
  /// part, c128. For functions of complex numbers: how far each part moves with the operands (see ExactComplex), c128
  /// or f64. May be invalid.
  hlo::Literal magnitude = {};
  /// In the type of `exact`: the remainder that `exact` lacks if it is rounded itself; may be invalid.
  hlo::Literal rest = {};
  /// The allowed error of each element, or each part of one: f64 or c128. If it is valid, it replaces the bound for
  /// Sum, Scaled and Ulp.
  hlo::Literal allowed = {};
  /// pred: the elements of which NaN is as right as `value`; may be invalid. IEEE 754 leaves open whether a function that has
  /// a value for a quiet NaN, such as 1 to the power NaN, gives it or NaN for a signalling one.
  hlo::Literal nan_too = {};
  /// pred: the elements of which zero is as right as `value` on a device that flushes denormals; may be invalid. IEEE 754 leaves open
  /// whether a result is tiny before or after it is rounded: one below the least normal number that rounds to it may be flushed.
  hlo::Literal zero_too = {};
  /// pred: the elements that may be anything; may be invalid. Where one order of a sum overflows and another does not, and where a
  /// pattern's own formula gives NaN for infinities, nothing is demanded.
  hlo::Literal open = {};
};

/// The number of elements by their error relative to the allowed error: none, up to 2^-9, ... up to 1/2, up to 1, and
/// beyond.
constexpr size_t kErrorBins = 12;
using ErrorCounts = std::array<int64_t, kErrorBins>;

/// The result of comparing one output.
struct Comparison {
  bool agrees = true;
  double worst_ulp = 0;    ///< largest error in ULP of the result's type; infinity for a wrong NaN or infinity
  double worst_share = 0;  ///< largest error divided by the allowed error
  int64_t bad = 0;         ///< number of elements whose error is too large
  int64_t elements = 0;
  int64_t first = -1;                   ///< row-major index of the first of these
  std::string expected = {}, got = {};  ///< their values at this index
  std::string pattern = {};             ///< what the indices of wrong elements have in common
  ErrorCounts errors = {};              ///< counts of all elements by error
  std::vector<int64_t> all_bad = {};    ///< indices of all wrong elements, ascending
};

/// Returns the exact distance in units in the last place of `type` at `expected`.
double ulp_error(hlo::Type type, double expected, double got);
/// Returns the size of a unit in the last place of `type` at `value`.
double ulp_at(hlo::Type type, double value);
/// Returns the largest finite value of a float type.
double largest_finite(hlo::Type type);
/// Returns the largest finite magnitude of the elements, of the parts of complex ones; 0 if there is none.
double largest_magnitude(const hlo::Literal& value);
/// Where no bound of an error is known, a device may be off by this many times what rounding changes in the evaluator's own
/// results. The number is chosen, not derived.
inline constexpr double kEvaluatorNoise = 32;
/// Returns n u / (1 - n u), a bound on the relative error of n roundings of at most u each. Infinite if n u >= 1, where
/// there is no bound.
double gamma_of(double n, double u);
/// Returns 2^-p for a float type of precision p: half the distance from 1 to the next value.
double unit_roundoff(hlo::Type type);

/// Compares a result with the expected one. `flushes`: the device treats denormals as zero, so zero is accepted for
/// them.
Comparison compare(const Reference& expected, const hlo::Literal& got, const Bound& bound, bool flushes);

/// Returns a text such as "12 at (1, 4)" for messages.
std::string element_text(const hlo::Literal& value, int64_t index);
std::string index_text(const hlo::Shape& shape, int64_t index);

}  // namespace collet::conformance
