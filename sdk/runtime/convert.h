// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "sdk/runtime/client.h"
#include "sdk/runtime/layout.h"
#include "sdk/runtime/memory.h"

/// \file
/// Arrays in device memory from one layout to another.

namespace collet::runtime {

/// The same array in another layout (null: dense), in memory of its own; one of the two layouts is not null. `queue`: where
/// the device does it, behind `after`, of which `end` becomes the point; null: it is done on return, and the contents of
/// `from` are there. Where the device does not do it the host does, and waits for `after`.
Expected<MemoryRef> convert(Device& device, const MemoryRef& from, const Layout* to, Queue* queue,
                            std::span<const Point> after, Point& end);

}  // namespace collet::runtime
