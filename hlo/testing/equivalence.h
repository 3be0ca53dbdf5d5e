// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// Inputs for a module and the comparison of results, for tests that run one program in two ways.

namespace collet::hlo::testing {

/// Returns one literal for each parameter of the entry, filled by the rule InputRule::Kind::ByType. Each leaf of a tuple
/// counts as a parameter of its own.
std::vector<Literal> entry_inputs(const Module& module);

/// The allowed difference of two results.
struct Tolerance {
  /// Both are relative to the largest finite magnitude of the array. `wide` holds for f64 and c128, `single` for f32 and
  /// c64. Narrower floats may differ by a few units in the last place.
  double wide = 1e-12;
  double single = 1e-5;
  double narrow = 1;  ///< factor for the units in the last place: more than 1 if results are sums of larger terms
};

/// Compares `a` and `b` leaf by leaf. Returns an empty string if they agree, else a message that names the leaf and the
/// element that differ most. NaN and infinities must be in the same places. Integers and pred must be equal. Elements beyond
/// a dynamic size are not compared.
std::string difference(const Literal& a, const Literal& b, const Tolerance& tolerance = {});

}  // namespace collet::hlo::testing
