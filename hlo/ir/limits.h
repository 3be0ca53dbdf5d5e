// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "hlo/base/status.h"
#include "hlo/ir/shape.h"

/// \file
/// Limits for programs that are read. A few bytes can describe a shape that takes too long to process; all readers
/// refuse programs beyond these limits.

namespace collet::hlo {

/// Most dimensions of an array.
constexpr size_t kMostDimensions = 64;
/// Deepest nesting of tuples.
constexpr int kDeepestShape = 120;
/// Most arrays, tokens and tuples in one shape.
constexpr int64_t kMostParts = int64_t{1} << 17;
/// Most parts in all shapes that a program does not write out in full: shapes that are inferred from operands, and
/// those that a name or number stands for.
constexpr int64_t kMostPartsOfProgram = int64_t{1} << 24;

/// Counts the parts of a program's shapes.
class ShapeBudget {
 public:
  /// `more`: parts that are allowed in addition, depending on the size of the file.
  explicit ShapeBudget(int64_t more = 0) : left_(kMostPartsOfProgram + more) {}
  /// Counts a shape. Returns RESOURCE_EXHAUSTED if it, or all shapes together, have more parts than allowed. The time
  /// is proportional to the size of the shape, up to the limits.
  Status charge(const Shape& shape);
  /// Counts `parts` parts that have been determined before; there may be at most `most`.
  Status charge(int64_t parts, int depth, int64_t most = kMostParts);

 private:
  int64_t left_;
};

}  // namespace collet::hlo
