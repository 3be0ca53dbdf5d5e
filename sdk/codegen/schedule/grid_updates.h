// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How a grid runs a kernel that updates an array in the order of its loops, such as a scatter.

#include <collet/codegen/target.h>

#include <cstdint>

#include "sdk/codegen/kernel/kernel.h"

namespace collet::codegen {

/// Updates of the same element keep their order, others need not: so the points of the loops are grouped by what they update. A first
/// kernel writes for every point of the ordered loops a number that is the same where the updates meet. The numbers are sorted, equal ones
/// in their order. Then a thread takes a group of equal numbers, for one point of the other loops, and makes its updates in their order.
struct UpdateSchedule {
  enum class Part : uint8_t {
    kKeys,  ///< writes the numbers, of type s32, to the buffer behind those of the kernel
    kUpdates,  ///< makes the updates; behind the kernel's buffers it has the sorted numbers and the points that they come from
  };
  Part part = Part::kKeys;
  uint64_t ordered = 0;  ///< outer loops, as a bit set
  int64_t ordered_points = 1;
  int64_t free_points = 1;  ///< of the other loops, different points of which never update the same element

  bool operator==(const UpdateSchedule&) const = default;
};

/// The outer loops of a kernel whose order matters that may be taken in any order all the same: different points of them never write
/// to the same place, whatever the other loops do.
uint64_t independent_loops(const Kernel& kernel);

/// Whether a kernel's updates should be grouped, and by which loops.
bool choose_updates(const Kernel& kernel, UpdateSchedule& out);

}  // namespace collet::codegen
