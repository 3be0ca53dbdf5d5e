// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "sdk/runtime/client.h"
#include "sdk/runtime/memory/event.h"
#include "sdk/runtime/memory/memory.h"

/// \file
/// Copies between backend memory and the host: blocking copies, and copies that are put on queues.

namespace collet::runtime {

/// Copies host data into memory. Waits for the work that uses the memory.
Status upload(Backend& backend, Memory* memory, const void* data, uint64_t bytes, uint64_t offset = 0);
/// Copies memory, whose contents must be complete, to the host.
Status download(Backend& backend, const Memory* memory, uint64_t offset, void* out, uint64_t bytes);
/// Copies within a backend, or between two backends through the host. The contents of `from` must be complete; waits
/// for the work that uses `to`.
Status copy_memory(Backend& from_backend, const Memory* from, Backend& to_backend, Memory* to, uint64_t bytes);

/// Puts a copy on a queue, after `after` and after the work that uses `to`; returns the point at which it ends. `from`
/// and `to` are the memory of the region; null for a host pointer.
Expected<Point> put_copy(Queue& queue, const collet_copy_region& region, Memory* from, Memory* to,
                         std::span<const Point> after);

/// A copy for a queue.
struct QueuedCopy {
  collet_copy_region region{};
  MemoryRef from, to;            ///< empty for a host pointer in the region
  std::shared_ptr<char[]> host;  ///< null, or the memory to which the region's host pointer points
  std::function<void()> done;    ///< null, or called when the copy has ended, with success or failure
};

/// Starts a copy when `before` has been placed or set (null: immediately); takes over a reference to `before`. The
/// returned event reports the end of the copy and has one reference. `worker` waits if waiting is necessary.
Expected<Event*> start_copy(Client& client, Worker& worker, Queue& queue, QueuedCopy copy, Event* before);
/// Does the same for an existing, pending event. Blocks until `before` is placed or set.
void start_copy_for(Client& client, Queue& queue, QueuedCopy copy, Event* before, Event* event);

}  // namespace collet::runtime
