// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Finds which elements of a buffer a kernel uses, where it selects between them and other values by position, as
/// causal masks do.

#include <collet/codegen/kernel.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "sdk/codegen/kernel/scalar.h"

namespace collet::codegen {

/// The values first .. end - 1 of a loop variable; none if `end` is not above `first`.
struct LoopRange {
  int64_t first = 0;
  int64_t end = 0;
  bool operator==(const LoopRange&) const = default;
};

/// A buffer with the elements first, first + step, first + 2 * step and so on.
struct Sequence {
  int64_t first = 0;
  int64_t step = 0;
};

/// Returns a range of the variable of loop `loop` outside of which no result depends on what is loaded from `buffer`.
/// `ranges` has the range of each loop, none of them empty; that of `loop` itself is the result if nothing is known.
/// `sequences` says which buffers are sequences; it may have fewer elements than there are buffers.
LoopRange used_range(const Kernel& kernel, uint32_t buffer, size_t loop, const std::vector<LoopRange>& ranges,
                     const std::vector<std::optional<Sequence>>& sequences = {});

/// An element, and a range of a loop variable outside of which an expression has that value.
struct ElsewhereConstant {
  LoopRange range;
  Element value{};
};
/// Returns a constant that an expression equals outside of a range of the variable of loop `loop`, because selects
/// between the constant and other values depend on the position; nullopt if there is none. `ranges` has the range of each
/// loop, none of them empty.
std::optional<ElsewhereConstant> elsewhere_constant(const Kernel& kernel, ExprId expr, size_t loop,
                                                    const std::vector<LoopRange>& ranges);

}  // namespace collet::codegen
