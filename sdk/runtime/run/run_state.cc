// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/run/run_state.h"

#include "sdk/runtime/memory/convert.h"
#include "sdk/runtime/memory/copy.h"

namespace collet::runtime {

Status RunState::find_queues() {
  queues.resize(count);
  last.resize(count);
  for (uint32_t p = 0; p < count; ++p) {
    COLLET_ASSIGN(queues[p], client.device(core.devices[p]).queue(COLLET_QUEUE_COMPUTE));
  }
  return ok_status();
}

Status RunState::allocate(Frame& frame, uint32_t p, uint32_t slot, Side side, uint64_t bytes,
                          const Queue* writer) const {
  MemoryRef& memory = frame.at(p, slot);
  if (memory || bytes == 0) return ok_status();
  COLLET_ASSIGN(memory, device(p, side).default_pool().take(bytes, writer));
  return ok_status();
}

Status RunState::wait(uint32_t p) const {
  if (last[p]) return wait_for({&last[p], 1});
  return wait_for(order.after);
}

Status RunState::settle(Who who) const {
  if (!has_queues()) return ok_status();
  for (uint32_t p : who) COLLET_TRY(of_participant(settle(p), p));
  return ok_status();
}

Status RunState::copy_within(uint32_t p, Side side, Memory* from, Memory* to, uint64_t bytes) {
  Queue* const q = queue(p, side);
  Backend& backend = device(p, side).backend();
  if (!q) return copy_memory(backend, from, backend, to, bytes);
  collet_copy_region region{};
  region.from.buffer = from->handle;
  region.to.buffer = to->handle;
  region.bytes = bytes;
  COLLET_ASSIGN(last[p], put_copy(*q, region, from, to, before_next(p)));
  return ok_status();
}

Status RunState::change_layout(uint32_t p, Side side, MemoryRef& memory, const Layout* layout) {
  if (!memory || memory->layout == layout) return ok_status();
  // A reshaped argument: the layouts are those of arrays with other dimensions, which have the dense array in common.
  if (memory->layout && layout && memory->layout->type != layout->type)
    COLLET_TRY(change_layout(p, side, memory, nullptr));
  Queue* const q = queue(p, side);
  const std::span<const Point> after = end(p) ? std::span<const Point>(&last[p], 1) : order.after;
  Point end;
  COLLET_ASSIGN(memory, convert(device(p, side), memory, layout, q, after, end));
  if (end) last[p] = end;
  return ok_status();
}

}  // namespace collet::runtime
