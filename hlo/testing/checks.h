// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// Extracts checks from modules that test themselves: StableHLO's tests call check.expect_eq and similar ops on a
/// computed and an expected value. The checks are removed from the program, so that any backend can run it and the host
/// compares the values.

namespace collet::hlo {

/// One check: the entry results `actual` and `expected` must agree.
struct Check {
  enum class Kind : uint8_t {
    Equal,        ///< all elements are equal; -0 equals 0, and a NaN equals only the same bits
    AlmostEqual,  ///< floats differ by at most `tolerance`, absolutely; NaN agrees with NaN
    Close         ///< floats at most `max_ulp` representable values apart, complex by parts; NaN agrees with NaN
  };
  Kind kind = Kind::Equal;
  double tolerance = 0;
  uint64_t min_ulp = 0, max_ulp = 3;
  size_t actual = 0, expected = 0;  ///< numbers of entry results
  std::string name;                 ///< name of the instruction
};

/// Replaces the entry's results by the operands of its check.* custom calls, and removes the calls. Calls of other
/// computations must have been inlined; a check inside of a loop or branch is an error. For a module without checks the
/// list is empty and the module is unchanged.
Expected<std::vector<Check>> lift_checks(Module& module);

/// The value that a module's check expects for one of its own results.
struct ExpectedResult {
  Check check;
  size_t result = 0;  ///< index of the leaf in the entry's result
  Literal value;
};

/// Returns the checks that compare a result of the entry with a constant; other checks are not listed. The constants
/// can be compared with the results of another program that computes the same results but has no checks.
Expected<std::vector<ExpectedResult>> expected_results(const Module& module);

/// Returns OK, or an error that says what differs and where.
Status compare_check(const Check& check, const Literal& actual, const Literal& expected);

}  // namespace collet::hlo
