// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "hlo/patterns/pattern_text.h"

/// \file
/// Values for the variables of a pattern that meet its conditions.

namespace collet::hlo::patterns {

/// The greatest length of a list of sizes for which instances are made.
constexpr int64_t kMostListed = 4;

/// Returns all combinations of types, choices and lengths of lists that the conditions allow. Sizes and constants have no
/// value in them; a list has so many ones. An error if there are too many.
Expected<std::vector<Bindings>> combinations(const PatternText& text);

/// Which sizes are 1: programs with such sizes are simplified to other ops. For each variable, for each of its sizes.
enum class Unit : char { Any = '?', One = '1', More = 'n' };
using Units = std::vector<std::vector<Unit>>;
/// Returns units that allow all sizes.
Units any_units(const PatternText& text, const Bindings& combination);

/// Completes a combination by sizes and constants that meet the conditions and `units`. With seed 0, sizes are distinct and
/// greater than 1 where possible, and constants are fractions that no pass creates; else both are drawn. An error if none were
/// found. `whole_constants`: constants are whole numbers, for integer types.
Expected<Bindings> choose(const PatternText& text, Bindings combination, const Units& units, uint64_t seed,
                          bool whole_constants);

}  // namespace collet::hlo::patterns
