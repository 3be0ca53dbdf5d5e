// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "hlo/ir/literal.h"

/// \file
/// The allowed errors of results, and their comparison with the oracle's. Every bound has a reason: a number of ULP for an
/// elementary function, Higham's gamma(n) times the sum of magnitudes for sums and products.

namespace collet::conformance {

/// The error that is allowed for the results of a case.
struct Bound {
  enum class Kind : uint8_t {
    Bits,   ///< the same bytes: data movement
    Exact,  ///< the same values; NaN is NaN, zeros have their sign
    Ulp,    ///< within `ulps` of the exact result (f16, bf16 and narrower: of the once-rounded result)
    Sum,    ///< within gamma(terms) * magnitude, element by element
    Scaled  ///< within `ulps` of the output's largest magnitude: factorisations, transforms
  };
  Kind kind = Kind::Exact;
  double ulps = 0;
  double terms = 1;
  /// Sums of 16-bit types are kept in at least f32, as a product does; else in the result's own type.
  bool wide = true;
  /// Operands choose what is summed (select-and-scatter): the magnitude takes their absolute values from the second on.
  bool signed_data = false;
  /// Judged by the program in f64, not in its own types, as Sum always is: for what may keep more than the types say.
  bool exact = false;
  /// Ulp of complex numbers: what operands that are a unit off would move is allowed, be it more than a unit of the modulus.
  bool conditioned = false;
  /// 0: everything is judged; 1: only the upper, -1: only the lower triangle of the last two dimensions.
  int triangle = 0;
};

/// The expected values of one output, and what is needed to bound the error.
struct Reference {
  hlo::Literal value = {};  ///< in the output's type, rounded once
  hlo::Literal exact =
      {};  ///< f64 or c128, for Sum and `exact`, and for functions of f32, f64, c64 and c128; may be invalid
  /// For Sum: the same program on absolute values, f64; or of exact sums of complex numbers that of each part, c128. For functions of
  /// complex numbers how far each part moves with the operands (ExactComplex), c128 or f64. May be invalid.
  hlo::Literal magnitude = {};
  hlo::Literal rest = {};  ///< of the type of `exact`: what it lacks where it is rounded itself; may be invalid
  /// The error that each element, or each part of one, may have: f64 or c128. Where it is valid it stands for any bound of Sum, Scaled and
  /// Ulp.
  hlo::Literal allowed = {};
};

/// How many elements have which error, as a share of what is allowed: none, up to 2^-9, ... up to 1/2, up to 1, and beyond.
constexpr size_t kErrorBins = 12;
using ErrorCounts = std::array<int64_t, kErrorBins>;

/// The result of comparing one output.
struct Comparison {
  bool agrees = true;
  double worst_ulp = 0;    ///< largest error in ULP of the result's type; infinity for a wrong NaN or infinity
  double worst_share = 0;  ///< largest error as a share of what is allowed
  int64_t bad = 0;         ///< elements out of bounds
  int64_t elements = 0;
  int64_t first = -1;                   ///< index of the first of them, row-major
  std::string expected = {}, got = {};  ///< there
  std::string pattern = {};             ///< what the bad indices have in common
  ErrorCounts errors = {};              ///< of all elements
  std::vector<int64_t> all_bad = {};    ///< the wrong ones, ascending
};

/// The exact distance in units in the last place of `type` at `expected`.
double ulp_error(hlo::Type type, double expected, double got);
/// The size of a unit in the last place of `type` at `value`.
double ulp_at(hlo::Type type, double value);
/// The largest finite value of a float type.
double largest_finite(hlo::Type type);
/// n u / (1 - n u): the relative error of n roundings, each of at most u. Infinite where that is no bound.
double gamma_of(double n, double u);
/// 2^-p of a float type, p its precision: half the distance from 1 to the next value.
double unit_roundoff(hlo::Type type);

/// `flushes`: the device takes denormals for zero, so that a zero may stand for one.
Comparison compare(const Reference& expected, const hlo::Literal& got, const Bound& bound, bool flushes);

/// "12 at (1, 4)": for messages.
std::string element_text(const hlo::Literal& value, int64_t index);
std::string index_text(const hlo::Shape& shape, int64_t index);

}  // namespace collet::conformance
