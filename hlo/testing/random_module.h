// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// \file
/// Random programs, for tests that compare two ways of running a program.

namespace collet::hlo::testing {

struct RandomModule {
  /// Number of steps in the entry. Each adds at least one instruction; bodies of loops, branches and calls have further steps.
  int steps = 24;
  /// Whether there are loops, conditionals, calls and fusions.
  bool control_flow = true;
  /// Sizes of dimensions.
  std::vector<int64_t> sizes = {1, 2, 3, 4, 5, 7};
  /// An array that has about this number of elements is not made larger. Sizes are halved until an array has no more.
  int64_t most_elements = 200;
  /// Whether rare types and ops are used too: 4- and 8-bit floats and integers, c128, convolutions, Fourier transforms, gradients
  /// of windows, random bits, reductions of several arrays.
  bool everything = false;
  /// Whether values are sent to the host, from the entry, loops, their conditions, and branches.
  bool effects = false;
};

/// Returns HLO text of a valid module, the same for the same `seed`. It has ops of most families and types of every kind; among
/// the shapes are scalars, empty arrays and dimensions of one. Its parameters are arrays.
///
/// The results are well conditioned: values that implementations may round differently (functions, sums in another order) are never
/// operands of a discontinuous op (compare, floor, sort, a conversion to integers) or of one that would enlarge the difference.
std::string random_module(uint64_t seed, const RandomModule& options = {});

}  // namespace collet::hlo::testing
