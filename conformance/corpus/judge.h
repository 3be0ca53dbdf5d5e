// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hlo/ir/literal.h"
#include "hlo/testing/agreement.h"
#include "hlo/testing/corpus.h"

/// \file
/// When a result agrees with a known one.

namespace collet::conformance {

/// The result of a comparison: empty `wrong` means agreement.
struct Agreement {
  std::string wrong;
  double share = 0;       ///< largest error as a share of what is allowed
  std::string note = {};  ///< of an agreement: what the module leaves open, or how it is conditioned
};

/// Results of another implementation in the same precision: a share of the output's largest finite magnitude that
/// depends on its type; NaN and infinities in the same places; integers exactly. `variants` say how well the module
/// determines them: see hlo/testing/agreement.h.
Agreement agrees_with_index(const std::vector<hlo::Literal>& expected, const std::vector<hlo::Literal>& got,
                            const hlo::testing::VariantLists& variants = {});

/// A float64 sample: within 4 times the error of XLA:CPU, at least 8 ULP of the largest magnitude.
Agreement agrees_with_model(const hlo::testing::ModelCase& model, const std::vector<hlo::Literal>& got);
/// The program as f64: within 1e-9 of the largest magnitude.
Agreement agrees_with_model_in_f64(const hlo::testing::ModelCase& model, const std::vector<hlo::Literal>& got);
/// XLA's own error is so large that agreement in f32 says little.
bool needs_f64(const hlo::testing::ModelCase& model);

}  // namespace collet::conformance
