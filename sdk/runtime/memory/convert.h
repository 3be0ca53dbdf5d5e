// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "sdk/runtime/client.h"
#include "sdk/runtime/memory/layout.h"
#include "sdk/runtime/memory/memory.h"

/// \file
/// Converts arrays in device memory from one layout to another.

namespace collet::runtime {

/// Returns the same array in another layout (null: dense), in new memory; at least one of the two layouts is not null.
/// If the device converts, and `queue` is not null, the work is put there after `after`, and `end` is set to its point.
/// With a null `queue` the conversion is complete on return, and the contents of `from` must be complete. If the device
/// cannot convert, the host does, after waiting for `after`.
Expected<MemoryRef> convert(Device& device, const MemoryRef& from, const Layout* to, Queue* queue,
                            std::span<const Point> after, Point& end);

}  // namespace collet::runtime
