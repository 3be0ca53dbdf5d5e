// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// \file
/// Programs by chance, for tests that compare one way of running with another.

namespace collet::hlo::testing {

struct RandomModule {
  /// Steps in the entry, at least; what loops, branches and calls hold comes on top.
  int steps = 24;
  /// Loops, conditionals, calls, fusions.
  bool control_flow = true;
  /// Of dimensions.
  std::vector<int64_t> sizes = {1, 2, 3, 4, 5, 7};
  /// Also what few programs have: 4- and 8-bit floats and integers, wide complex numbers, convolutions, transforms,
  /// gradients of windows, random bits, reductions of several arrays.
  bool everything = false;
  /// Values are sent to the host: from the entry, loops, their conditions, and branches.
  bool effects = false;
};

/// HLO text of a valid module that follows from `seed`: ops of most families over types of every kind, among the shapes
/// scalars, empty arrays and dimensions of one. Its parameters are arrays.
///
/// Results are well conditioned: what implementations may round differently (functions, sums in another order) never
/// reaches an op with steps (compare, floor, sort, a conversion to integers) nor one that would enlarge the difference.
std::string random_module(uint64_t seed, const RandomModule& options = {});

}  // namespace collet::hlo::testing
