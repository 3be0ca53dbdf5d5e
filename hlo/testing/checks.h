// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// Modules that check themselves: StableHLO's tests call check.expect_eq and its kind on a computed and an expected value.
/// The checks are lifted out of the program, so that any backend can run it and the host compares.

namespace collet::hlo {

/// One check: entry results `actual` and `expected` are to agree.
struct Check {
  enum class Kind : uint8_t {
    Equal,        ///< every element; -0 equals 0, a NaN only the same bits
    AlmostEqual,  ///< floats within `tolerance`, absolutely; NaN agrees with NaN
    Close         ///< floats at most `max_ulp` representable values apart, complex by parts; NaN agrees with NaN
  };
  Kind kind = Kind::Equal;
  double tolerance = 0;
  uint64_t min_ulp = 0, max_ulp = 3;
  size_t actual = 0, expected = 0;  ///< numbers of entry results
  std::string name;                 ///< of the instruction
};

/// Replaces the entry's results by the operands of its check.* custom calls and drops the calls. Calls of other
/// computations must have been inlined; a check inside of a loop or branch is an error. No checks: an empty list and an
/// unchanged module.
Expected<std::vector<Check>> lift_checks(Module& module);

/// The expectation of a module's check for one of its own results.
struct ExpectedResult {
  Check check;
  size_t result = 0;  ///< number of the leaf of the entry's result
  Literal value;
};

/// The checks that compare a result of the entry with a constant, which is what they expect; others are not listed.
/// Another program of the same results, in which the checks are missing, can be compared with them.
Expected<std::vector<ExpectedResult>> expected_results(const Module& module);

/// OK, or what differs and where.
Status compare_check(const Check& check, const Literal& actual, const Literal& expected);

}  // namespace collet::hlo
