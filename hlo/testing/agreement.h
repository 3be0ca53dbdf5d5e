// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "hlo/testing/corpus.h"

/// \file
/// Whether a result agrees with a known one.

namespace collet::hlo::testing {

struct Agreement {
  bool agrees = true;
  double worst = 0;    ///< largest error, as a share of what is allowed
  std::string detail;  ///< the first element that is wrong: where, what was got, what was expected
};

/// An entry's result, by the rule of its index: within a share of the output's largest finite magnitude (1e-12 for f64
/// and c128, 1e-4 for f32 and c64, 2e-3 for f16, 2e-2 for bf16; one unit in the last place of it for narrower ones), NaN
/// and infinities in the same places; integers and pred exactly.
/// Padding beyond `got`'s run-time sizes does not count.
///
/// `wide`, where there is one: the result of the same module with its floats read as f64. How far `got` lies from it
/// shows how well the module is conditioned; errors of up to 4 times that are agreement too, and `detail` says so.
Agreement agrees_with_index(const Literal& expected, const Literal& got, const Literal* wide = nullptr);
/// All results of an entry, tuples flattened.
Agreement agrees_with_index(std::span<const Literal> expected, std::span<const Literal> got,
                            std::span<const Literal> wide = {});

/// A model's result: within 4 times the other implementation's own error, at least 8 units in the last place of the
/// largest magnitude; integers exactly. `as_f64`: of the program with floats read as f64: within 1e-9 of the magnitude.
Agreement agrees_with_model(const ModelOutput& expected, const Literal& got, bool as_f64 = false);

}  // namespace collet::hlo::testing
