// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Schedules kernels that update an array in the order of their loops, such as scatters, on a grid.

#include <collet/codegen/kernel.h>
#include <collet/codegen/target.h>

#include <cstdint>

namespace collet::codegen {

/// Only updates of the same element must keep their order, so the points of the loops are grouped by the element that
/// they update. A first kernel writes a key for every point of the ordered loops; points that update the same elements
/// have equal keys. The keys are sorted stably. Then a second kernel runs a thread for each group of equal keys and
/// each point of the other loops, which makes the group's updates in their order.
struct UpdateSchedule {
  enum class Part : uint8_t {
    kKeys,  ///< writes the keys, of type s32, to the buffer that follows those of the kernel
    /// Makes the updates; after the kernel's buffers it has those of the sorted keys and of the points that they belong
    /// to.
    kUpdates,
  };
  Part part = Part::kKeys;
  uint64_t ordered = 0;  ///< the ordered outer loops, as a bit set
  int64_t ordered_points = 1;
  /// Number of points of the other loops, of which different ones never update the same element.
  int64_t free_points = 1;
  /// Different keys are different quotients of the index, less its constant, by this divisor of its other parts.
  int64_t key_step = 1;
  int key_bits = 32;  ///< bits of a key; higher ones are cut off

  bool operator==(const UpdateSchedule&) const = default;
};

/// Returns those outer loops of an ordered kernel that may be run in any order nevertheless: different points of them
/// never write the same element, whatever the values of the other loops.
uint64_t independent_loops(const Kernel& kernel);

/// Sets the step and the bits of the keys. The updated array has `elements` elements.
void choose_keys(const Kernel& kernel, int64_t elements, UpdateSchedule& out);

/// Decides whether a kernel's updates should be grouped, and by which loops.
bool choose_updates(const Kernel& kernel, UpdateSchedule& out);

}  // namespace collet::codegen
