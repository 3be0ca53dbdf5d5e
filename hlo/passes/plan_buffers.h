// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>

#include "hlo/base/status.h"
#include "hlo/program/leaves.h"

namespace collet::hlo {

/// An offset in one arena for each value that is neither an argument nor a result of the entry, for the given order of
/// instructions. Values share memory if their live ranges do not overlap.
///
/// Guarantees, for leaves (a tuple has the memory of its elements):
/// - two values that are live at the same time do not overlap, unless they have the same offset and one of these holds:
///   the later one is computed from the earlier one in place (elementwise ops of equal width, and the operand of
///   dynamic-update-slice, if the operand is not used afterwards); a while's result is its operand, not used
///   afterwards; the argument of a computation is the while's result or the op's operand; the result of a computation
///   is the op's result;
/// - a loop's state has one offset for the whole loop, that of the while's result. A result of its body has the same
///   offset, or memory of its own; it never has the memory of another state element, so the copies back may run in any
///   order;
/// - the memory of a body is not shared with any value that is live across the op.
/// So if operand and result have the same offset, nothing needs to be copied; otherwise a copy is safe.
struct BufferPlan {
  static constexpr uint64_t kNone = UINT64_MAX;
  uint64_t bytes = 0;
  uint32_t alignment = 64;
  std::unordered_map<Leaf, uint64_t, LeafHash> offsets;

  /// Returns the offset of a value; kNone for an argument, a constant, a result of the entry, and a value without data.
  uint64_t offset(Leaf leaf) const {
    auto it = offsets.find(leaf);
    return it == offsets.end() ? kNone : it->second;
  }
};

/// Plans the buffers of a verified module in the form that flatten_tuples produces.
Expected<BufferPlan> plan_buffers(const Module& module, uint32_t alignment = 64);

}  // namespace collet::hlo
