// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "hlo/testing/corpus.h"

/// \file
/// Checks whether a result agrees with the expected result of the corpus.

namespace collet::hlo::testing {

struct Agreement {
  bool agrees = true;
  double worst = 0;    ///< largest error, divided by the error that is allowed
  std::string detail;  ///< if it does not agree, the first wrong element: its index, its value, the expected value
};

/// Results of the project's own evaluator for a module, which show how well the module is conditioned. `reference` is its plain
/// result, `wide` that with all floats read as f64, and `other` that with the other choice wherever the meaning of an op leaves
/// one (EvalContext::other_choices). Each may be null.
///
/// agrees_with_index checks a result of an entry of an index. The allowed error is relative to the output's largest finite magnitude:
/// 1e-12 for f64 and c128, 1e-4 for f32 and c64, 2e-3 for f16, 2e-2 for bf16, one unit in the last place for narrower types. NaN
/// and infinities must be in the same places; integers and pred must be equal. Elements beyond `got`'s run-time sizes do not count.
///
/// With variants, errors of up to 4 times the distance of `wide` or `other` from `reference` are allowed too. Elements that another
/// choice replaces (ties of an unstable sort, undefined elements) need only be equal as a set; they are not checked if the choices
/// do not agree as a set either. `detail` says so.
struct Variants {
  const Literal* reference = nullptr;
  const Literal* wide = nullptr;
  const Literal* other = nullptr;
};
Agreement agrees_with_index(const Literal& expected, const Literal& got, const Variants& variants = {});
/// The same results for all outputs of an entry, with tuples flattened.
struct VariantLists {
  std::span<const Literal> reference, wide, other;
};
Agreement agrees_with_index(std::span<const Literal> expected, std::span<const Literal> got,
                            const VariantLists& variants = {});

/// The error that is allowed of a program with its floats read as f64, times the largest magnitude. A constant such as 1e-6, rounded to bf16
/// before it was printed, moves results by more than 1e-9.
inline constexpr double kWideError = 4e-9;

/// Checks a result of a model. The allowed error is 4 times XLA's own error, or 8 units in the last place of the largest magnitude
/// if that is more; integers must be equal. With `as_f64`, for the program with its floats read as f64, it is kWideError of the magnitude.
Agreement agrees_with_model(const ModelOutput& expected, const Literal& got, bool as_f64 = false);

}  // namespace collet::hlo::testing
