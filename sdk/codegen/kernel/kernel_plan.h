// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/kernel.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "sdk/codegen/graph/graph.h"

/// \file
/// A kernel in a program: what its buffers hold.

namespace collet::codegen {

/// A value that is zero in some indices of one dimension: where (offset modulo period) / step is outside of
/// [first, first + count). `period` is the dimension's size times `step`, the distance of two indices in elements.
struct ZeroBorder {
  ValueId value = kNone;
  int64_t period = 0;
  int64_t step = 0;
  int64_t first = 0;
  int64_t count = 0;
};

/// A kernel and the values that its buffers hold.
struct KernelPlan {
  Kernel kernel;
  std::vector<ValueId> buffers;  ///< indexed by the number of the buffer
  std::vector<ValueId> writes;
  /// Pairs (operand, result) that may share memory.
  std::vector<std::pair<ValueId, ValueId>> in_place;
  /// Pairs (operand, result): the operand must be copied into the result before the kernel runs, unless both share
  /// memory.
  std::vector<std::pair<ValueId, ValueId>> copies;
  std::optional<ZeroBorder> zero_border;  ///< what is known to be zero of a value that the kernel reads
  bool has_edges = false;  ///< whether the kernel computes a concatenation, and should be split at the operands' edges
};

/// Returns true for values that are read from memory.
using InputTest = std::function<bool(ValueId)>;

/// Makes a value in memory that one kernel writes and another reads.
using MakeValue = std::function<ValueId(uint32_t element, Dims dims)>;

}  // namespace collet::codegen
