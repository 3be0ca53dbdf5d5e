// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>

#include "hlo/base/status.h"
#include "hlo/program/leaves.h"

namespace collet::hlo {

/// A place in one arena for each value that is neither an argument nor a result of the entry, given the order that
/// instructions stand in. Values share memory when they are not needed at the same time.
///
/// Promises, for leaves seen through tuples:
/// - two values that are needed at the same time do not overlap, unless they are the same place and one of these holds:
///   the later one is made from the earlier one in place (elementwise ops of equal width, and the operand of
///   dynamic-update-slice, where the operand is not needed afterwards); a while's result is its operand, not needed
///   afterwards; a region's argument is the while's result or the op's operand; a region's result is what the op gives;
/// - a loop's state has one place for the whole loop, that of the while's result. A result of its body lies there too, or
///   in memory of its own; never in that of other state, so copying back needs no order;
/// - memory of a body is not shared with anything that is needed across the op.
/// So where operand and result have the same place nothing needs to be copied, and anywhere else a copy is safe.
struct BufferPlan {
  static constexpr uint64_t kNone = UINT64_MAX;
  uint64_t bytes = 0;
  uint32_t alignment = 64;
  std::unordered_map<Leaf, uint64_t, LeafHash> offsets;

  /// kNone: an argument, a constant or a result of the entry, or without data.
  uint64_t offset(Leaf leaf) const {
    auto it = offsets.find(leaf);
    return it == offsets.end() ? kNone : it->second;
  }
};

/// For a verified module in the form of flatten_tuples.
Expected<BufferPlan> plan_buffers(const Module& module, uint32_t alignment = 64);

/// Places intervals of `bytes` needed from `first` to `last` (inclusive) so that those of overlapping times do not overlap;
/// fills `offset`, returns the height. Exposed for tests.
struct PlacedInterval {
  int64_t first = 0, last = 0;
  uint64_t bytes = 0;
  uint64_t offset = 0;
};
uint64_t place_intervals(std::vector<PlacedInterval>& intervals, uint32_t alignment);

}  // namespace collet::hlo
