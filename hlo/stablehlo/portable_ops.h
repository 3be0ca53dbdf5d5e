// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/stablehlo/mlir.h"

namespace collet::hlo::mlir {

/// CHLO's ops in the form that artifacts have: custom calls, or attributes that stand as text. Null for all others. What
/// it makes lives in `scratch`.
const Op* portable_form(const Op& op, Program& scratch);

}  // namespace collet::hlo::mlir
