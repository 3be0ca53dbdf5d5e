// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sdk/runtime/executable.h"
#include "sdk/runtime/memory_pool.h"
#include "sdk/runtime/queue.h"

/// \file
/// The state that the steps of one run share.

namespace collet::runtime {

/// Memory of a sequence's slots, participant after participant.
class Frame {
 public:
  Frame(const Sequence& sequence, uint32_t participants)
      : width_(sequence.slots.size()), slots_(width_ * participants) {}
  MemoryRef& at(uint32_t participant, uint32_t slot) { return slots_[participant * width_ + slot]; }

 private:
  size_t width_;
  Small<MemoryRef, 24> slots_;
};

/// Numbers of participants that do something together, rising.
using Who = std::span<const uint32_t>;

/// One run: what it runs, and how far the queues of its participants' devices are.
class RunState {
 public:
  RunState(Client& of_client, const ExecutableCore& of_core, uint64_t id, const RunOrder& in_order)
      : client(of_client),
        core(of_core),
        plan(of_core.plan),
        run_id(id),
        count(of_core.participants()),
        order(in_order) {}

  /// Finds the queues.
  Status begin() { return client.backend().queue_table() ? find_queues() : ok_status(); }

  Device& device(uint32_t p, Side side) const {
    return side == Side::Fallback ? client.fallback_device() : client.device(core.devices[p]);
  }
  /// The queue of a participant's launches; null where they block.
  Queue* queue(uint32_t p, Side side) const { return has_queues() && side == Side::Device ? queues[p] : nullptr; }
  bool has_queues() const { return !queues.empty(); }
  /// The end of a participant's last work on its queue; no point where there is none.
  Point end(uint32_t p) const { return has_queues() ? last[p] : Point(); }
  /// Memory of at least `bytes` for a slot that has none. `writer`: the queue of the work that writes to it; null where the
  /// host does.
  Status allocate(Frame& frame, uint32_t p, uint32_t slot, Side side, uint64_t bytes, const Queue* writer) const;
  /// Waits until a participant's arguments are there and its launches have ended, so that the host can use its memory.
  Status settle(uint32_t p) const { return has_queues() ? wait(p) : ok_status(); }
  Status settle(Who who) const;
  /// Returns the points that the next work of a participant waits for, apart from its work before, which has waited for the arguments.
  std::span<const Point> before_next(uint32_t p) const { return end(p) ? std::span<const Point>() : order.after; }
  /// Copies within a device: on the participant's queue, or at once where there is none.
  Status copy_within(uint32_t p, Side side, Memory* from, Memory* to, uint64_t bytes);
  /// Gives the array in `memory` the layout (null: dense), in other memory, unless it has it already.
  Status change_layout(uint32_t p, Side side, MemoryRef& memory, const Layout* layout);
  /// An error of one participant, which is the end of all.
  Status of_participant(Status status, uint32_t p) const {
    if (status.ok() || count == 1) return status;
    return status.with_prefix("participant " + std::to_string(p) + ": ");
  }

  Client& client;
  const ExecutableCore& core;
  const Plan& plan;
  const uint64_t run_id;
  const uint32_t count;  ///< of participants
  const RunOrder& order;
  Small<Queue*, 4> queues;      ///< compute queue of each participant's device; empty where devices have none
  Small<Point, 4> last;         ///< of each of these: the end of the last work there
  bool* overwritten = nullptr;  ///< see RunMemory

 private:
  Status find_queues();
  Status wait(uint32_t p) const;
};

}  // namespace collet::runtime
