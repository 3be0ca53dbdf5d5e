// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <atomic>
#include <mutex>

#include "sdk/runtime/array_type.h"
#include "sdk/runtime/client.h"
#include "sdk/runtime/event.h"
#include "sdk/runtime/memory.h"

namespace collet::runtime {

/// An array in a memory space of a device. Reference-counted; begins with one reference.
class Buffer {
 public:
  /// `ready` null: it is ready now. Takes over a reference to `ready`.
  static Buffer* make(Client& client, uint32_t device, uint32_t space, const ArrayType* type, MemoryRef memory,
                      Event* ready);
  static Expected<Buffer*> from_host(Client& client, uint32_t device, uint32_t space, const collet_host_array& array);

  /// One whose data comes later: by write and fulfil, or not at all by fail.
  static Expected<Buffer*> promise(Client& client, uint32_t device, uint32_t space, const ArrayType* type);
  /// See collet.h; FAILED_PRECONDITION for what is no promise, or no longer.
  Status write(uint64_t offset, uint64_t bytes, const void* data);
  /// `source` null: what was written is the data.
  Status fulfil(Buffer* source);
  Status fail(Status outcome);

  void retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release();

  Client& client() const { return *client_; }
  const ArrayType& type() const { return *type_; }
  uint32_t device() const { return device_; }
  uint32_t space() const { return space_; }
  bool is_deleted() const { return deleted_.load(std::memory_order_acquire); }

  /// The references that a use of the buffer holds.
  struct Use {
    MemoryRef memory;
    Event* ready = nullptr;  ///< null: ready, with success. A reference of the user's.
  };
  /// FAILED_PRECONDITION once it is deleted; the failure of what made it, once that is known.
  Status use(Use& out);
  /// Deletes it and hands out its memory; nothing where that was done before. give_back undoes it.
  MemoryRef give();
  void give_back(MemoryRef memory);
  /// Deletes it: its memory goes as soon as nobody uses it.
  void erase();

  /// A new reference.
  Event* ready_event();
  Status to_host(uint64_t offset, uint64_t bytes, void* out, Event** out_event);
  Expected<Buffer*> copy_to(uint32_t device, uint32_t space);
  const void* host_pointer();

 private:
  /// For a use of the buffer: waits until its memory has its contents' layout, and makes a dense copy if that is not
  /// dense.
  Status make_dense(Use& use);
  Buffer() = default;
  /// Ends the promise: hands out what it holds.
  Status settle(MemoryRef& memory, Event*& event);

  std::atomic<uint32_t> refs_{1};
  std::atomic<bool> deleted_{false};
  uint32_t device_ = 0, space_ = 0;
  Client* client_ = nullptr;
  const ArrayType* type_ = nullptr;
  std::mutex mutex_;  // of what follows
  MemoryRef memory_;
  Event* ready_ = nullptr;
  // The memory of a promised buffer, until the promise is fulfilled or fails.
  MemoryRef promised_;
  Event* promise_ = nullptr;
};

}  // namespace collet::runtime
