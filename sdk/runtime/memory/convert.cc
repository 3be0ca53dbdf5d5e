// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/memory/convert.h"

#include <memory>
#include <new>
#include <string>

#include "sdk/runtime/memory/copy.h"

namespace collet::runtime {
namespace {

Expected<std::unique_ptr<char[]>> host_memory(uint64_t bytes) {
  std::unique_ptr<char[]> out(new (std::nothrow) char[bytes]);
  if (!out) return resource_exhausted("no host memory for an array of " + std::to_string(bytes) + " bytes");
  return out;
}

// Converts a layout on the host. The work that writes `from` must have ended.
Status convert_on_host(Backend& backend, const ArrayType& type, const Memory* from, Memory* to, const Layout* layout) {
  const uint64_t from_bytes = layout_bytes(type, from->layout), to_bytes = layout_bytes(type, layout);
  COLLET_ASSIGN(std::unique_ptr<char[]> data, host_memory(from_bytes));
  COLLET_TRY(download(backend, from, 0, data.get(), from_bytes));
  if (from->layout) {
    COLLET_ASSIGN(std::unique_ptr<char[]> dense, host_memory(type.bytes));
    from_layout(*from->layout, data.get(), dense.get());
    data = std::move(dense);
  }
  if (layout) {
    COLLET_ASSIGN(std::unique_ptr<char[]> placed, host_memory(to_bytes));
    to_layout(*layout, data.get(), placed.get());
    data = std::move(placed);
  }
  return upload(backend, to, data.get(), to_bytes);
}

}  // namespace

Expected<MemoryRef> convert(Device& device, const MemoryRef& from, const Layout* to, Queue* queue,
                            std::span<const Point> after, Point& end) {
  Backend& backend = device.backend();
  const ArrayType& type = *(to ? to : from->layout)->type;
  COLLET_ASSIGN(MemoryRef out, device.default_pool().take(layout_bytes(type, to), queue));
  out->layout = to;
  const collet_place here = {from->handle, nullptr, 0}, there = {out->handle, nullptr, 0};
  if (backend.converts()) {
    Status status;
    if (queue) {
      Points waits;
      COLLET_TRY(add_waits(after, *queue, waits));
      out->uses.add_waits(*queue, waits);
      Queue* const queues[] = {queue};
      Submission submission(queues);
      submission.wait_for(0, std::move(waits));
      status = backend.convert(device.index(), type, here, from->layout, there, to, submission.sync(0));
      if (status.ok()) {
        end = submission.commit(0);
        from->uses.add(end);
        out->uses.add(end);
      }
    } else {
      out->uses.wait();
      status = backend.convert(device.index(), type, here, from->layout, there, to, nullptr);
    }
    if (status.code() != Code::Unimplemented) {
      COLLET_TRY(std::move(status));
      return out;
    }
  }
  if (queue) COLLET_TRY(wait_for(after));
  COLLET_TRY(convert_on_host(backend, type, from.get(), out.get(), to));
  return out;
}

}  // namespace collet::runtime
