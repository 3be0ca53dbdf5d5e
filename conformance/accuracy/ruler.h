// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "hlo/ir/types.h"

namespace collet::conformance {

/// Measures errors in units in the last place (ULP) of a float type of at most 32 bits, fast enough for all its values.
class Ruler {
 public:
  explicit Ruler(hlo::Type type);

  /// Returns the distance of `got`, a value of the type, from the exact result. An infinity stands for the power of two above the largest
  /// finite value, so that a result that overflows by rounding has the error of a rounding. Infinite where one of the two
  /// is NaN, where an exact infinity is missed, and where the sign of a zero or of an underflow is wrong. `rest` is what
  /// `exact` lacks where it is rounded itself.
  double error(double exact, double got, double rest = 0) const;

 private:
  int digits_, least_exponent_;
  double beyond_;
};

}  // namespace collet::conformance
