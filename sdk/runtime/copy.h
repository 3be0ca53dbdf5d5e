// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "sdk/runtime/client.h"
#include "sdk/runtime/event.h"
#include "sdk/runtime/memory.h"

/// \file
/// Copies between memory of backends and the host: those that block, and those that are put on queues.

namespace collet::runtime {

/// Copies host data into memory. Waits for the work that uses the memory.
Status upload(Backend& backend, Memory* memory, const void* data, uint64_t bytes, uint64_t offset = 0);
/// Copies memory, whose contents are there, to the host.
Status download(Backend& backend, const Memory* memory, uint64_t offset, void* out, uint64_t bytes);
/// Copies within a backend, or between two by way of the host. The contents of `from` are there; waits for the work that
/// uses `to`.
Status copy_memory(Backend& from_backend, const Memory* from, Backend& to_backend, Memory* to, uint64_t bytes);

/// Puts a copy on a queue, behind `after` and behind the work that uses `to`: the point at which it has ended. `from` and
/// `to`: the memory of the region; null where it has a host pointer.
Expected<Point> put_copy(Queue& queue, const collet_copy_region& region, Memory* from, Memory* to,
                         std::span<const Point> after);

/// A copy for a queue.
struct QueuedCopy {
  collet_copy_region region{};
  MemoryRef from, to;            ///< empty where the region has a host pointer
  std::shared_ptr<char[]> host;  ///< null, or what the region's host pointer points into
  std::function<void()> done;    ///< null, or called when the copy has ended, with success or failure
};

/// Starts a copy as soon as `before` is on a queue or has come (null: at once); takes over a reference to `before`. The event
/// tells of the copy's end and begins with one reference. `worker` waits where that takes time.
Expected<Event*> start_copy(Client& client, Worker& worker, Queue& queue, QueuedCopy copy, Event* before);
/// Likewise for an event that exists already and is pending. Blocks until `before` is on a queue or has come.
void start_copy_for(Client& client, Queue& queue, QueuedCopy copy, Event* before, Event* event);

}  // namespace collet::runtime
