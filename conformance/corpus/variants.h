// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "hlo/ir/literal.h"
#include "hlo/testing/agreement.h"

/// \file
/// How well a module determines its own results.

namespace collet::conformance {

/// The reference's results of a module: as it stands, with its floats read as f64, and with the other choice wherever the
/// meaning of an op leaves one. A list is empty where that run did not end well.
struct VariantRuns {
  std::vector<hlo::Literal> reference, wide, other;
  hlo::testing::VariantLists lists() const { return {reference, wide, other}; }
};

/// Evaluates `text` three times, each for at most `seconds`. The backend under test has no part in it.
VariantRuns run_variants(const std::string& text, const std::string& file, const std::vector<hlo::Literal>& inputs,
                         double seconds);

}  // namespace collet::conformance
