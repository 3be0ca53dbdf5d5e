// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// Whether two modules, or two values, say the same.

namespace collet::hlo::testing {

/// Inputs by type for each parameter of the entry, tuples leaf by leaf with running numbers.
std::vector<Literal> entry_inputs(const Module& module);

/// How far apart two results may be.
struct Tolerance {
  /// Relative to the largest finite magnitude of the array, by type; f64 and c128 have `wide`, f32 and c64 `single`,
  /// narrower floats a few of their own steps.
  double wide = 1e-12;
  double single = 1e-5;
};

/// Empty where `a` and `b` agree, leaf by leaf; else which leaf and element differ most. NaN and infinities must be in the
/// same places; integers and pred agree exactly. What lies outside of a dynamic size is not compared.
std::string difference(const Literal& a, const Literal& b, const Tolerance& tolerance = {});

}  // namespace collet::hlo::testing
