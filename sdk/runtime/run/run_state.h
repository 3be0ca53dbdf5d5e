// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sdk/runtime/memory/memory_pool.h"
#include "sdk/runtime/memory/queue.h"
#include "sdk/runtime/run/executable.h"

/// \file
/// The state that the steps of one run share.

namespace collet::runtime {

/// The memory of a sequence's slots, one participant after another.
class Frame {
 public:
  Frame(const Sequence& sequence, uint32_t participants)
      : width_(sequence.slots.size()), slots_(width_ * participants) {}
  MemoryRef& at(uint32_t participant, uint32_t slot) { return slots_[participant * width_ + slot]; }

 private:
  size_t width_;
  Small<MemoryRef, 24> slots_;
};

/// Numbers of participants that execute a step together, ascending.
using Who = std::span<const uint32_t>;

/// The state of one run: its program, memory, and the last points on the queues of its participants' devices.
class RunState {
 public:
  RunState(Client& of_client, const ExecutableCore& of_core, uint64_t id, const RunOrder& in_order)
      : client(of_client),
        core(of_core),
        plan(of_core.plan),
        run_id(id),
        count(of_core.participants()),
        order(in_order) {}

  /// Prepares the run: finds the queues.
  Status begin() { return client.backend().queue_table() ? find_queues() : ok_status(); }

  Device& device(uint32_t p, Side side) const {
    return side == Side::Fallback ? client.fallback_device() : client.device(core.devices[p]);
  }
  /// Returns the queue of a participant's launches; null if they block.
  Queue* queue(uint32_t p, Side side) const { return has_queues() && side == Side::Device ? queues[p] : nullptr; }
  bool has_queues() const { return !queues.empty(); }
  /// Returns the end of a participant's last work on its queue; no point if there is none.
  Point end(uint32_t p) const { return has_queues() ? last[p] : Point(); }
  /// Allocates at least `bytes` for an empty slot. `writer`: the queue of the work that writes to it; null if the host
  /// does.
  Status allocate(Frame& frame, uint32_t p, uint32_t slot, Side side, uint64_t bytes, const Queue* writer) const;
  /// Waits until a participant's arguments are complete and its launches have ended, so that the host can use its
  /// memory.
  Status settle(uint32_t p) const { return has_queues() ? wait(p) : ok_status(); }
  Status settle(Who who) const;
  /// Returns the points for which the next work of a participant must wait. These are the arguments' points for its
  /// first work; later work follows it on the same queue.
  std::span<const Point> before_next(uint32_t p) const { return end(p) ? std::span<const Point>() : order.after; }
  /// Copies within a device: on the participant's queue, or immediately if there is none.
  Status copy_within(uint32_t p, Side side, Memory* from, Memory* to, uint64_t bytes);
  /// Replaces the array in `memory` by one with the layout (null: dense), in other memory, unless it has that layout.
  Status change_layout(uint32_t p, Side side, MemoryRef& memory, const Layout* layout);
  /// Adds the participant to the message of its error, which ends the run for all.
  Status of_participant(Status status, uint32_t p) const {
    if (status.ok() || core.total() == 1) return status;
    return status.with_prefix("participant " + std::to_string(core.number(p)) + ": ");
  }

  Client& client;
  const ExecutableCore& core;
  const Plan& plan;
  const uint64_t run_id;
  const uint32_t count;  ///< number of participants
  const RunOrder& order;
  Small<Queue*, 4> queues;      ///< compute queue of each participant's device; empty if the devices have none
  Small<Point, 4> last;         ///< by participant: the end of the last work on that queue
  bool* overwritten = nullptr;  ///< see RunMemory

 private:
  Status find_queues();
  Status wait(uint32_t p) const;
};

}  // namespace collet::runtime
