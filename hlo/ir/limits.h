// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "hlo/base/status.h"
#include "hlo/ir/shape.h"

/// \file
/// What a program that is read may hold at most. A few bytes can name a shape that takes longer to walk than anybody
/// waits; such programs are refused by every way in, and these are the numbers.

namespace collet::hlo {

/// Dimensions of an array.
constexpr size_t kMostDimensions = 64;
/// Tuples inside of each other.
constexpr int kDeepestShape = 120;
/// Arrays, tokens and tuples in one shape.
constexpr int64_t kMostParts = int64_t{1} << 17;
/// The same in all that a program does not write out: shapes that follow from operands, and what stands for a name or a
/// number.
constexpr int64_t kMostPartsOfProgram = int64_t{1} << 24;

/// Counts the parts of a program's shapes.
class ShapeBudget {
 public:
  /// `more`: parts beyond those of any program, by the size of the file.
  explicit ShapeBudget(int64_t more = 0) : left_(kMostPartsOfProgram + more) {}
  /// RESOURCE_EXHAUSTED where the shape, or all of them together, hold more than a program may. Takes as long as the
  /// shape is large, within the limits.
  Status charge(const Shape& shape);
  /// The same for what is counted already, and may have `most` parts.
  Status charge(int64_t parts, int depth, int64_t most = kMostParts);

 private:
  int64_t left_;
};

}  // namespace collet::hlo
