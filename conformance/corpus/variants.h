// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "hlo/ir/literal.h"
#include "hlo/testing/agreement.h"

/// \file
/// Determines how precisely a module determines its own results.

namespace collet::conformance {

/// The evaluator's results of a module: unchanged, with its floats read as f64, and with the other choice wherever an
/// op leaves one (EvalContext::other_choices). A list is empty if that run failed.
struct VariantRuns {
  std::vector<hlo::Literal> reference, wide, other;
  hlo::testing::VariantLists lists() const { return {reference, wide, other}; }
};

/// Evaluates `text` three times, each for at most `seconds`. The backend under test is not used.
VariantRuns run_variants(const std::string& text, const std::string& file, const std::vector<hlo::Literal>& inputs,
                         double seconds);

}  // namespace collet::conformance
