// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "hlo/ir/ops.h"

/// \file
/// Elementary functions of one argument in double precision, by the C library: fast enough for every f32.

namespace collet::conformance {

/// The functions that near_function knows, in the order of the op table.
std::span<const hlo::Op> near_functions();
/// Returns a function that computes an op within a few units of the 53rd bit; null for other ops. An error in ULP of an f32 result that is measured
/// against it is thus known to 1e-7, which tells the largest errors; those are measured again against exact_functions.
double (*near_function(hlo::Op op))(double);
/// Computes the same for `count` finite numbers, by vector functions if the C library has them: within 4 units of the
/// 53rd bit. Results for infinities and NaN, and results that are not finite, are unspecified.
void near_values(hlo::Op op, const double* in, double* out, size_t count);

}  // namespace collet::conformance
