// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "sdk/runtime/client.h"
#include "sdk/runtime/memory/array_type.h"
#include "sdk/runtime/memory/event.h"
#include "sdk/runtime/memory/memory.h"

namespace collet::runtime {

/// An array in a memory space of a device. Reference-counted; begins with one reference.
class Buffer {
 public:
  /// Creates a buffer. A null `ready` means that its contents are complete. Takes over a reference to `ready`.
  static Buffer* make(Client& client, uint32_t device, uint32_t space, const ArrayType* type, MemoryRef memory,
                      Event* ready);
  static Expected<Buffer*> from_host(Client& client, uint32_t device, uint32_t space, const collet_host_array& array);

  /// Creates a promised buffer, whose data is set later: by write and fulfil, or never, by fail.
  static Expected<Buffer*> promise(Client& client, uint32_t device, uint32_t space, const ArrayType* type);
  /// See collet.h; FAILED_PRECONDITION if the buffer is not, or no longer, a promise.
  Status write(uint64_t offset, uint64_t bytes, const void* data);
  /// Fulfils the promise. With a null `source` the written data is used.
  Status fulfil(Buffer* source);
  Status fail(Status outcome);

  void retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release();
  /// Takes a reference for work that continues when the caller has released the buffer, see Client::retain_for_work.
  void retain_for_work() { refs_.fetch_add(kWorkReference, std::memory_order_relaxed); }
  void release_after_work();

  Client& client() const { return *client_; }
  const ArrayType& type() const { return *type_; }
  uint32_t device() const { return device_; }
  uint32_t space() const { return space_; }
  bool is_deleted() const { return deleted_.load(std::memory_order_acquire); }

  /// The references that a use of the buffer holds.
  struct Use {
    MemoryRef memory;
    Event* ready = nullptr;  ///< null: ready, with success. The user owns this reference.
  };
  /// Begins a use. FAILED_PRECONDITION if the buffer is deleted; the failure of the work that produces it, if known.
  Status use(Use& out);
  /// Deletes the buffer and moves its memory to `memory`; false if it was deleted before. give_back reverses this.
  bool give(MemoryRef& memory);
  void give_back(MemoryRef memory);
  /// Deletes the buffer; its memory is freed when nothing uses it any more.
  void erase();

  /// Returns a new reference to the event of its completion.
  Event* ready_event();
  /// Waits until a use of the buffer is complete and returns its dense data, which live as long as the use and `copy`: the memory itself
  /// if the host sees it, else a copy of it. Null for 0 bytes.
  Expected<const void*> host_data(Use& use, std::unique_ptr<char[]>& copy);
  /// Returns the host's address of what a promised buffer is fulfilled with; null if the host cannot write there. The caller holds a
  /// reference to the buffer, and fulfils or fails it afterwards.
  void* promised_place();
  Status to_host(uint64_t offset, uint64_t bytes, void* out, Event** out_event);
  Expected<Buffer*> copy_to(uint32_t device, uint32_t space);
  const void* host_pointer();

 private:
  /// Prepares a use of the buffer as a dense array: waits until its memory has the layout of its contents, and makes a
  /// dense copy if that layout is not dense.
  Status make_dense(Use& use);
  /// to_host() of a use.
  Status copy_to_host(Use use, uint64_t offset, uint64_t bytes, void* out, Event** out_event);
  Buffer() = default;
  /// Ends the buffer without references, but not its reference to the client.
  void destroy();
  /// Ends the promise and returns its memory and event.
  Status settle(MemoryRef& memory, Event*& event);

  std::atomic<uint64_t> refs_{1};  // see kWorkReference
  std::atomic<bool> deleted_{false};
  uint32_t device_ = 0, space_ = 0;
  Client* client_ = nullptr;
  const ArrayType* type_ = nullptr;
  std::mutex mutex_;  // guards the following members
  MemoryRef memory_;
  Event* ready_ = nullptr;
  // The memory of a promised buffer, until the promise is fulfilled or fails.
  MemoryRef promised_;
  Event* promise_ = nullptr;
  std::atomic<uint32_t> writers_ = 0;  ///< calls of write that are copying
};

}  // namespace collet::runtime
