// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "hlo/base/status.h"
#include "sdk/runtime/backend/backend.h"
#include "sdk/runtime/memory/queue.h"

namespace collet::runtime {

class Pool;
struct Layout;

/// A reference-counted piece of backend memory; without references it returns to its pool. Work on queues may still use
/// it then: `uses` has the points for which the next writer must wait.
///
/// Deferred memory, see Pool::defer, has no handle until Pool::allocate has been called for it.
///
/// The fields from `layout` on describe the contents. The writer of the memory sets them before other threads can see it.
struct Memory {
  std::atomic<uint32_t> refs{1};
  uint32_t size_class = 0;
  Pool* pool = nullptr;
  collet_backend_buffer* handle = nullptr;
  void* host = nullptr;   ///< null if the host cannot access it
  uint64_t capacity = 0;  ///< 0 as long as nothing is allocated for deferred memory
  bool is_deferred = false;
  /// Keeps host memory that the buffer wraps, which nobody may change; null: the backend has allocated the memory.
  std::shared_ptr<const void> owner;
  uint64_t kept_since = 0;  ///< the pool's number of calls of decay when it came back
  Uses uses;

  // The state of the contents.
  const Layout* layout = nullptr;  ///< null: dense and row-major
  /// A number that is unique for these contents: it changes whenever the contents change.
  uint64_t contents = 0;
  bool is_known = false;   ///< true if it is a scalar whose value the host knows
  uint8_t value[16] = {};  ///< that value
};

/// Owns a reference to Memory; may be empty.
class MemoryRef {
 public:
  MemoryRef() = default;
  /// Takes over a reference.
  explicit MemoryRef(Memory* memory) : memory_(memory) {}
  MemoryRef(const MemoryRef& other) : memory_(other.memory_) {
    if (memory_) memory_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  MemoryRef(MemoryRef&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}
  MemoryRef& operator=(MemoryRef other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~MemoryRef() { reset(); }
  /// Releases the reference.
  void reset() {
    if (memory_) drop();
  }

  Memory* get() const { return memory_; }
  Memory* operator->() const { return memory_; }
  explicit operator bool() const { return memory_ != nullptr; }
  /// Returns the number of references to the memory, including this one.
  uint32_t count() const { return memory_ ? memory_->refs.load(std::memory_order_acquire) : 0; }

 private:
  void drop();
  Memory* memory_ = nullptr;
};

/// Allocates memory of one space of one device, in size classes, and keeps returned memory for later requests. Thread-safe.
class Pool {
 public:
  /// Frees memory that other pools keep, and caches that are not needed.
  using MakeRoom = std::function<void()>;
  /// Reports that the pool keeps much memory, so that decay should be called. Called without a lock.
  using KeepsMuch = std::function<void()>;
  Pool(std::shared_ptr<Backend> backend, uint32_t device, uint32_t space, MakeRoom make_room, KeepsMuch keeps_much);
  /// All memory must have been returned.
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Returns at least `bytes` bytes; an empty reference for 0. If the backend has no memory left, calls make_room and tries again.
  /// Work on queue `order` may still use the memory, so only work on that queue may write to it. Null: no work uses it.
  Expected<MemoryRef> take(uint64_t bytes, const Queue* order = nullptr);
  /// Returns memory for which nothing is allocated yet: for results of a run that starts later. Many such runs may wait, and those
  /// before them return memory when they end. An empty reference for 0 bytes.
  Expected<MemoryRef> defer(uint64_t bytes);
  /// Makes memory of what the host has at `host`, which nobody changes and `owner` keeps, without a copy. It must be only read. An
  /// error if the backend cannot, or the address lacks the space's alignment.
  Expected<MemoryRef> wrap(const void* host, uint64_t bytes, std::shared_ptr<const void> owner);
  /// Allocates deferred memory, unless that was done already; does nothing for other memory. Several threads may call it for the same
  /// memory. A thread may access the memory after it has called this.
  Status allocate(Memory& memory);
  /// Gives deferred memory for which nothing has been allocated what `from` has: its place and its contents. The caller has the only
  /// reference to `from`, which has nothing afterwards. Returns false, and changes nothing, if `to` has been allocated, if `from` is
  /// not memory of this pool and of the same size, or if work on queues uses it.
  bool move(Memory& from, Memory& to);
  /// Frees all memory that is kept. Waits for the work that uses it.
  void trim();
  /// Called from time to time: frees memory that was not requested since the call before the last. Returns how many bytes are
  /// still kept.
  uint64_t decay();

  /// Gives the contents of memory a new number, if the backend has the table "residency", which needs it.
  void change_contents(Memory& memory) {
    if (!counts_contents_) return;
    memory.contents = (number_ << 40) | (contents_.fetch_add(1, std::memory_order_relaxed) + 1);
  }

  Backend& backend() const { return *backend_; }
  uint32_t device() const { return device_; }
  uint32_t space() const { return space_; }
  uint64_t bytes_in_use() const { return in_use_.load(std::memory_order_relaxed); }
  uint64_t peak_bytes() const { return peak_.load(std::memory_order_relaxed); }

 private:
  friend class MemoryRef;
  static constexpr uint64_t kKeptBytes = uint64_t{4} << 30, kMuch = uint64_t{32} << 20;

  void put(Memory* memory);
  Expected<MemoryRef> take_class(uint32_t size_class, const Queue* order);
  /// Returns kept memory of a size class that work on `order` may use; null if there is none. The caller holds the lock.
  Memory* find(uint32_t size_class, const Queue* order);
  void give_up(Memory* memory);
  void count(uint64_t more, uint64_t less);

  std::shared_ptr<Backend> backend_;
  uint32_t device_, space_;
  MakeRoom make_room_;
  KeepsMuch keeps_much_;
  std::mutex allocating_;  // held while deferred memory is allocated, so that no memory is allocated twice
  std::mutex mutex_;
  std::vector<std::vector<Memory*>> free_;  // by size class
  uint64_t kept_ = 0, decays_ = 0;
  const uint64_t number_;  // number of the pool in the process
  const bool counts_contents_;
  std::atomic<uint64_t> contents_{0};
  std::atomic<uint64_t> in_use_{0}, peak_{0};  // written under the lock
};

}  // namespace collet::runtime
