// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/stablehlo/mlir.h"

namespace collet::hlo::mlir {

/// Returns CHLO ops in the form that artifacts use: custom calls, or attributes as text. Returns null for all other
/// ops. `scratch` owns the result.
const Op* portable_form(const Op& op, Program& scratch);

}  // namespace collet::hlo::mlir
