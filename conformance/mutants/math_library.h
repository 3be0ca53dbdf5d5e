// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

/// \file
/// The elementary functions of a C library, by which an op can be computed in place of the evaluator.

namespace collet::mutants {

/// Selects the shared library at `path`, from which by_math_library takes functions. Before the first call, and for a null or
/// empty path, these are the functions of the process. Returns false if the library cannot be opened.
bool use_math_library(const char* path);

/// Returns op(x, y) by the library's function for f32 or, with `wide`, f64; `y` is ignored by functions of one operand.
/// Nothing if the library has no function for the op.
std::optional<double> by_math_library(uint32_t op, bool wide, double x, double y);

}  // namespace collet::mutants
