/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_INSTANCE_HPP
#define COLLET_KERNEL_INSTANCE_HPP

/** \file
 * An opened backend that is a table of kernels: its devices, memory and records. Included by kernel_backend.hpp.
 */

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>

#include "error.h"
#include "kernel_plan.hpp"

namespace collet {
namespace kernel {
namespace detail {

/** Fills an error from an exception. Called while the exception is handled. */
inline collet_status describe_exception(collet_error* error) noexcept {
  try {
    throw;
  } catch (const Error& failure) {
    collet_set_error(error, failure.code(), failure.what());
  } catch (const std::bad_alloc&) {
    collet_set_error(error, COLLET_RESOURCE_EXHAUSTED, "out of memory");
  } catch (const std::exception& failure) {
    collet_set_error(error, COLLET_INTERNAL, failure.what());
  } catch (...) {
    collet_set_error(error, COLLET_INTERNAL, "an exception of unknown type");
  }
  return error->code;
}

/** Runs `body`, and converts an exception to a status. */
template <class Body>
collet_status guarded(collet_error* error, const Body& body) noexcept {
  try {
    body();
    return COLLET_OK;
  } catch (...) {
    return describe_exception(error);
  }
}

/** The memory of one space of a device that the SDK has allocated. */
struct Usage {
  uint64_t bytes = 0, peak = 0, pieces = 0;
};

/** An opened backend. */
struct Instance {
  Backend backend;
  TypeSet known;
  std::vector<collet_memory_space> spaces;
  std::vector<std::unique_ptr<Records>> records;  // one for each device, which it must outlive
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::vector<uint32_t>> peers;  // peers of each device
  std::mutex serial;                         // held during all calls of devices if the backend has COLLET_TRAIT_SERIAL
  std::mutex usage_mutex;
  std::vector<std::vector<Usage>> usage;  // by device and space
  std::mutex host_mutex;
  std::map<uintptr_t, uint64_t> host_memory;  // registered host memory: bytes by address
  std::mutex queue_mutex;                     // guards the fields below, and the state of all queues
  std::vector<class Queue*> queues;
  std::condition_variable queue_changed;
  std::atomic<uint64_t> queue_changes{0};  // counts the changes; read without the mutex by threads that poll
  std::mutex together;                     // held while an execution with several participants is put on their queues

  /** Reports a change of a queue. The caller holds queue_mutex. */
  void notify_queues() {
    queue_changes.fetch_add(1, std::memory_order_release);
    queue_changed.notify_all();
  }
  /** Locks queue_mutex, which is held for short times only. With Backend::queue_poll_ns, the thread tries repeatedly
   * before it sleeps, because waking it takes longer than waiting for the mutex. */
  std::unique_lock<std::mutex> lock_queues() {
    std::unique_lock<std::mutex> lock(queue_mutex, std::defer_lock);
    lock_again(lock);
    return lock;
  }
  /** Locks queue_mutex by `lock`, as lock_queues does. */
  void lock_again(std::unique_lock<std::mutex>& lock) const {
    constexpr int kTries = 2000;
    for (int i = 0; i < kTries && backend.queue_poll_ns != 0; ++i) {
      if (lock.try_lock()) return;
      pause();
    }
    lock.lock();
  }
  /** Tells the processor that this thread polls, so that the other thread of the same core can use more of it. */
  static void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }
  /** Polls until `holds` is true, at most for Backend::queue_poll_ns. `lock` holds queue_mutex, but not while polling.
   * Returns whether `holds` is true. */
  template <class Condition>
  bool poll_queues(std::unique_lock<std::mutex>& lock, const Condition& holds) {
    if (holds()) return true;
    if (backend.queue_poll_ns == 0) return false;
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::nanoseconds(static_cast<int64_t>(backend.queue_poll_ns));
    uint64_t seen = queue_changes.load(std::memory_order_relaxed);
    lock.unlock();
    while (std::chrono::steady_clock::now() < end) {
      if (queue_changes.load(std::memory_order_acquire) == seen) {
        pause();
        continue;
      }
      lock_again(lock);
      if (holds()) return true;
      seen = queue_changes.load(std::memory_order_relaxed);
      lock.unlock();
    }
    lock_again(lock);
    return holds();
  }
  /** Blocks until `holds` is true, which a change of a queue makes so. `lock` holds queue_mutex. */
  template <class Condition>
  void await_queues(std::unique_lock<std::mutex>& lock, const Condition& holds) {
    if (!poll_queues(lock, holds)) queue_changed.wait(lock, holds);
  }

  /** Returns the lock to hold while devices are called. */
  std::unique_lock<std::mutex> lock_serial() {
    return (backend.traits & COLLET_TRAIT_SERIAL) != 0 ? std::unique_lock<std::mutex>(serial)
                                                       : std::unique_lock<std::mutex>();
  }
  Device* device(uint32_t number) const {
    if (number >= devices.size()) throw Error(COLLET_OUT_OF_RANGE, "there is no device " + std::to_string(number));
    return devices[number].get();
  }
  void add_usage(uint32_t device, uint32_t space, uint64_t bytes, bool taken) {
    const std::lock_guard<std::mutex> lock(usage_mutex);
    Usage& one = usage[device][space];
    if (taken) {
      one.bytes += bytes;
      one.peak = std::max(one.peak, one.bytes);
      ++one.pieces;
    } else {
      one.bytes -= bytes;
      --one.pieces;
    }
  }
};

struct Buffer {
  Instance* instance;
  uint32_t number;  // number of the device
  uint32_t space;
  Device* device;
  Memory memory;
  uint64_t bytes;
  bool is_wrapped = false;  // the memory is the caller's: see Device::wrap
};

inline Buffer* unwrap(collet_backend_buffer* buffer) {
  return reinterpret_cast<Buffer*>(buffer);
}
inline Instance* unwrap(collet_backend_instance* instance) {
  return reinterpret_cast<Instance*>(instance);
}

/** Device memory that is freed with this object. */
class OwnedMemory {
 public:
  OwnedMemory(Device* device, uint64_t bytes, uint64_t alignment)
      : device_(device), memory_(device->allocate(bytes, alignment)) {}
  OwnedMemory(OwnedMemory&& other) noexcept : device_(other.device_), memory_(other.memory_) {
    other.memory_ = no_memory;
  }
  OwnedMemory& operator=(OwnedMemory&&) = delete;
  ~OwnedMemory() {
    if (memory_ != no_memory) device_->free(memory_);
  }
  Device* device() const { return device_; }
  Memory memory() const { return memory_; }
  Memory release() {
    const Memory out = memory_;
    memory_ = no_memory;
    return out;
  }

 private:
  Device* device_;
  Memory memory_;
};

/** Runs `body`, and records it as work of a device from call to return. */
template <class Body>
void recorded(Device& device, const char* name, const char* engine, uint64_t run_id, uint64_t bytes, const Body& body) {
  if (!device.wants_records() || device.records_itself()) return body();
  Record one;
  one.name = name;
  one.engine = engine;
  one.start_ns = clock_ns();
  one.run_id = run_id;
  one.bytes = bytes;
  body();
  one.duration_ns = clock_ns() - one.start_ns;
  device.record(one);
}

/** Checks one end of a copy: it must be inside a buffer of the instance. */
inline void check_place(const Instance* instance, const collet_place& place, uint64_t bytes) {
  if (!place.buffer) {
    if (!place.host && bytes != 0) throw Error(COLLET_INVALID_ARGUMENT, "a copy from or to nowhere");
    return;
  }
  const Buffer* buffer = unwrap(place.buffer);
  if (buffer->instance != instance) throw Error(COLLET_INVALID_ARGUMENT, "a buffer of another instance");
  if (!collet_has_range(buffer->bytes, place.offset, bytes)) {
    throw Error(COLLET_OUT_OF_RANGE, "a copy beyond the end of a buffer: " + std::to_string(bytes) + " bytes at " +
                                         std::to_string(place.offset) + " of " + std::to_string(buffer->bytes));
  }
}

inline void check_regions(const Instance* instance, const collet_copy_region* regions, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    check_place(instance, regions[i].from, regions[i].bytes);
    check_place(instance, regions[i].to, regions[i].bytes);
  }
}

/** Makes one copy. `ordered` is the device after whose started work the copy comes; other devices have no work that uses
 * this memory. `marks` receives the marks of copies between the host and device `starts` that have not ended; null if
 * all copies must have ended. */
inline void copy_region(const collet_copy_region& region, const Device* ordered, bool all_ordered,
                        const Device* starts = nullptr, std::vector<uint64_t>* marks = nullptr) {
  if (region.bytes == 0) return;
  const Buffer *from = unwrap(region.from.buffer), *to = unwrap(region.to.buffer);
  char* from_host = static_cast<char*>(region.from.host) + (from ? 0 : region.from.offset);
  char* to_host = static_cast<char*>(region.to.host) + (to ? 0 : region.to.offset);
  const auto put = [&](const char* data) {
    recorded(*to->device, "copy to device", "copies", 0, region.bytes, [&] {
      if (all_ordered || to->device == ordered)
        return to->device->write(to->memory, region.to.offset, data, region.bytes);
      if (from || !marks || to->device != starts)
        return to->device->upload(to->memory, region.to.offset, data, region.bytes);
      const uint64_t mark = to->device->start_upload(to->memory, region.to.offset, data, region.bytes);
      if (mark != 0) marks->push_back(mark);
    });
  };
  const auto get = [&](char* data) {
    recorded(*from->device, "copy from device", "copies", 0, region.bytes, [&] {
      if (all_ordered || from->device == ordered)
        return from->device->read(from->memory, region.from.offset, data, region.bytes);
      if (to || !marks || from->device != starts)
        return from->device->download(from->memory, region.from.offset, data, region.bytes);
      const uint64_t mark = from->device->start_download(from->memory, region.from.offset, data, region.bytes);
      if (mark != 0) marks->push_back(mark);
    });
  };
  if (!from && !to) {
    std::memcpy(to_host, from_host, region.bytes);
  } else if (!from) {
    put(from_host);
  } else if (!to) {
    get(to_host);
  } else if (from->device == to->device) {
    recorded(*to->device, "copy within device", "copies", 0, region.bytes,
             [&] { to->device->copy(to->memory, region.to.offset, from->memory, region.from.offset, region.bytes); });
  } else {
    bool linked = false;
    recorded(*from->device, "copy to another device", "copies", 0, region.bytes, [&] {
      linked = from->device->copy_to(*to->device, to->memory, region.to.offset, from->memory, region.from.offset,
                                     region.bytes);
    });
    if (linked) return;
    std::vector<char> between(region.bytes);
    get(between.data());
    put(between.data());
  }
}

/** Waits for all work that was started on a device. Throws its errors. */
inline void complete(Device* device) {
  const uint64_t mark = device->mark();
  if (mark != 0) device->wait(mark);
}

/** Waits for a device, and ignores errors of its work. */
inline void settle(Device* device) noexcept {
  try {
    device->finish();
  } catch (...) {
  }
}

/** Makes copies, and returns when they are done. If one fails, the others have ended, too. */
inline void copy_now(const std::vector<collet_copy_region>& regions) {
  const auto finish = [&](bool quietly) {
    for (const collet_copy_region& region : regions) {
      for (const collet_place* place : {&region.from, &region.to}) {
        if (!place->buffer) continue;
        if (quietly) {
          settle(unwrap(place->buffer)->device);
        } else if (place == &region.to) {
          complete(unwrap(place->buffer)->device);
        }
      }
    }
  };
  try {
    for (const collet_copy_region& region : regions) copy_region(region, nullptr, true);
    finish(false);
  } catch (...) {
    finish(true);
    throw;
  }
}

}  // namespace detail
}  // namespace kernel
}  // namespace collet

#endif
