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
/// `wide` and `other`, where there are any: the reference's results of the same module with its floats read as f64, and
/// with the other choice wherever an op's meaning leaves one. How far they lie from `reference`, its plain result, shows
/// how well the module is conditioned: errors of up to 4 times that are agreement too. Elements that those choices
/// change to something else (ties of an unstable sort, parts that nobody wrote) need only agree as a set, or not at all
/// where the choices do not agree as a set either. `detail` says so.
struct Variants {
  const Literal* reference = nullptr;
  const Literal* wide = nullptr;
  const Literal* other = nullptr;
};
Agreement agrees_with_index(const Literal& expected, const Literal& got, const Variants& variants = {});
/// All results of an entry, tuples flattened.
struct VariantLists {
  std::span<const Literal> reference, wide, other;
};
Agreement agrees_with_index(std::span<const Literal> expected, std::span<const Literal> got,
                            const VariantLists& variants = {});

/// A model's result: within 4 times the other implementation's own error, at least 8 units in the last place of the
/// largest magnitude; integers exactly. `as_f64`: of the program with floats read as f64: within 1e-9 of the magnitude.
Agreement agrees_with_model(const ModelOutput& expected, const Literal& got, bool as_f64 = false);

}  // namespace collet::hlo::testing
