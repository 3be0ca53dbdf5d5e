// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/passes/rewriter.h"

/// \file
/// lgamma and digamma near their zeros, where the terms of Lanczos' approximation cancel.

namespace collet::hlo {

/// The series takes the place of Lanczos' terms for z below this, in lgamma,
constexpr double kEndOfLgammaSeries = 2.5;
/// and for z within this of 1/2, in digamma.
constexpr double kEndOfDigammaSeries = 0.25;

/// If `root` is Lanczos' approximation of lgamma(1 + z) or of digamma(1 + z), as StableHLO and XLA write it, of f32 or f64,
/// builds the value with a power series near the zeros in its place,
/// which `root` is an operand of. Returns None for all else.
InstrId refine_gamma(Builder& builder, InstrId root);

}  // namespace collet::hlo
