// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hlo/ir/literal.h"
#include "hlo/testing/agreement.h"
#include "hlo/testing/corpus.h"

/// \file
/// Decides whether a result agrees with a known one.

namespace collet::conformance {

/// The result of a comparison: empty `wrong` means agreement.
struct Agreement {
  std::string wrong;
  double share = 0;  ///< largest error divided by the allowed error
  /// If the results agree: which elements the module does not determine, or how it is conditioned.
  std::string note = {};
};

/// Compares with results of another implementation in the same precision. Floats may differ by a share of the output's
/// largest finite magnitude that depends on the type; NaN and infinities must be at the same positions, and integers
/// must be equal. `variants` show how well the module determines the results: see hlo/testing/agreement.h.
Agreement agrees_with_index(const std::vector<hlo::Literal>& expected, const std::vector<hlo::Literal>& got,
                            const hlo::testing::VariantLists& variants = {});

/// Compares with a sample of a float64 result: within 4 times the error of XLA:CPU, or 8 ULP of the largest magnitude
/// if that is more.
Agreement agrees_with_model(const hlo::testing::ModelCase& model, const std::vector<hlo::Literal>& got);
/// Compares results of the program with floats read as f64: within hlo::testing::kWideError of the largest magnitude.
Agreement agrees_with_model_in_f64(const hlo::testing::ModelCase& model, const std::vector<hlo::Literal>& got);
/// True if XLA's own error is so large that an agreement in f32 is not meaningful.
bool needs_f64(const hlo::testing::ModelCase& model);

}  // namespace collet::conformance
