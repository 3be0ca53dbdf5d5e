// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

/// \file
/// The elementary functions of a C library, by which an op can be computed in place of the evaluator.

namespace collet::mutants {

/// Takes the functions of this shared library from now on; null or empty: those of the process. False if it cannot be opened.
bool use_math_library(const char* path);

/// Returns op(x, y) by the library's function for f32 or, with `wide`, f64; `y` is ignored by functions of one operand.
/// Nothing if the library has no function for the op.
std::optional<double> by_math_library(uint32_t op, bool wide, double x, double y);

}  // namespace collet::mutants
