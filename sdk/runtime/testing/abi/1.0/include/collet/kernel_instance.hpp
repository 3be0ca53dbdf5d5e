/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_INSTANCE_HPP
#define COLLET_KERNEL_INSTANCE_HPP

/** \file
 * An opened backend that is a table of kernels: its devices, memory and records. Included by kernel_backend.hpp.
 */

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "kernel_plan.hpp"

namespace collet {
namespace kernel {
namespace detail {

/** The text of `from` in an array of characters, ended by a zero and cut at a character of UTF-8 where too long. */
inline void copy_text(char* to, size_t room, const char* from) noexcept {
  size_t size = std::strlen(from);
  if (size >= room) {
    size = room - 1;
    while (size > 0 && (static_cast<unsigned char>(from[size]) & 0xC0) == 0x80) --size;
  }
  std::memcpy(to, from, size);
  std::memset(to + size, 0, room - size);
}

inline void set_error(collet_error* error, collet_status code, const char* message) noexcept {
  error->code = code;
  error->reserved = 0;
  copy_text(error->message, sizeof error->message, message);
}

/** What an exception says. To be called while it is handled. */
inline collet_status describe_exception(collet_error* error) noexcept {
  try {
    throw;
  } catch (const Error& failure) {
    set_error(error, failure.code(), failure.what());
  } catch (const std::bad_alloc&) {
    set_error(error, COLLET_RESOURCE_EXHAUSTED, "out of memory");
  } catch (const std::exception& failure) {
    set_error(error, COLLET_INTERNAL, failure.what());
  } catch (...) {
    set_error(error, COLLET_INTERNAL, "an exception of unknown type");
  }
  return error->code;
}

/** Runs `body`; an exception becomes a status. */
template <class Body>
collet_status guarded(collet_error* error, const Body& body) noexcept {
  try {
    body();
    return COLLET_OK;
  } catch (...) {
    return describe_exception(error);
  }
}

inline uint64_t clock_ns() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

/** The records of a device, until they are read. */
class Records final : public Recorder {
 public:
  bool is_on() const override { return on_.load(std::memory_order_relaxed); }
  void add(const Record& record) override {
    collet_profile_record one{};
    one.start_ns = record.start_ns;
    one.duration_ns = record.duration_ns;
    one.run_id = record.run_id;
    one.bytes = record.bytes;
    copy_text(one.name, sizeof one.name, record.name.c_str());
    copy_text(one.engine, sizeof one.engine, record.engine.c_str());
    const std::lock_guard<std::mutex> lock(mutex_);
    records_.push_back(one);
  }
  void enable(bool on) { on_ = on; }
  uint32_t read(collet_profile_record* out, uint32_t capacity) {
    const std::lock_guard<std::mutex> lock(mutex_);
    // Work ends on several engines: what began first is handed out first.
    std::sort(records_.begin(), records_.end(),
              [](const collet_profile_record& a, const collet_profile_record& b) { return a.start_ns < b.start_ns; });
    const auto count = static_cast<uint32_t>(std::min<size_t>(capacity, records_.size()));
    std::copy_n(records_.begin(), count, out);
    records_.erase(records_.begin(), records_.begin() + count);
    return count;
  }

 private:
  std::atomic<bool> on_{false};
  std::mutex mutex_;
  std::deque<collet_profile_record> records_;
};

/** Memory of one space of a device that the SDK holds. */
struct Usage {
  uint64_t bytes = 0, peak = 0, pieces = 0;
};

/** An opened backend. */
struct Instance {
  Backend backend;
  TypeSet known;
  std::vector<collet_memory_space> spaces;
  std::vector<std::unique_ptr<Records>> records;  // one for each device, and outlives it
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::vector<uint32_t>> peers;  // of each device
  std::mutex serial;                         // of all calls of devices, where the backend has COLLET_TRAIT_SERIAL
  std::mutex usage_mutex;
  std::vector<std::vector<Usage>> usage;  // by device and space
  std::mutex host_mutex;
  std::map<uintptr_t, uint64_t> host_memory;  // that is registered: address and bytes
  std::mutex queue_mutex;                     // of what follows, and of the state of all queues
  std::vector<class Queue*> queues;
  std::condition_variable queue_changed;

  /** To be held while devices are called. */
  std::unique_lock<std::mutex> turn() {
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
  uint32_t number;  // of the device
  uint32_t space;
  Device* device;
  Memory memory;
  uint64_t bytes;
};

inline Buffer* unwrap(collet_backend_buffer* buffer) {
  return reinterpret_cast<Buffer*>(buffer);
}
inline Instance* unwrap(collet_backend_instance* instance) {
  return reinterpret_cast<Instance*>(instance);
}

/** Memory that goes when its owner goes. */
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

/** Records what `body` does on a device, from call to return. */
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

/** One end of a copy, as the backend knows it. */
inline void check_place(const Instance* instance, const collet_place& place, uint64_t bytes) {
  if (!place.buffer) {
    if (!place.host && bytes != 0) throw Error(COLLET_INVALID_ARGUMENT, "a copy from or to nowhere");
    return;
  }
  const Buffer* buffer = unwrap(place.buffer);
  if (buffer->instance != instance) throw Error(COLLET_INVALID_ARGUMENT, "a buffer of another instance");
  if (place.offset > buffer->bytes || bytes > buffer->bytes - place.offset) {
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

/** Makes one copy. `ordered`: the device whose started work comes first; others have none that uses this memory. */
inline void copy_region(const collet_copy_region& region, const Device* ordered, bool all_ordered) {
  if (region.bytes == 0) return;
  const Buffer *from = unwrap(region.from.buffer), *to = unwrap(region.to.buffer);
  char* from_host = static_cast<char*>(region.from.host) + (from ? 0 : region.from.offset);
  char* to_host = static_cast<char*>(region.to.host) + (to ? 0 : region.to.offset);
  const auto put = [&](const char* data) {
    recorded(*to->device, "copy to device", "copies", 0, region.bytes, [&] {
      if (all_ordered || to->device == ordered)
        return to->device->write(to->memory, region.to.offset, data, region.bytes);
      to->device->upload(to->memory, region.to.offset, data, region.bytes);
    });
  };
  const auto get = [&](char* data) {
    recorded(*from->device, "copy from device", "copies", 0, region.bytes, [&] {
      if (all_ordered || from->device == ordered)
        return from->device->read(from->memory, region.from.offset, data, region.bytes);
      from->device->download(from->memory, region.from.offset, data, region.bytes);
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

/** Waits for what was started on a device; throws what went wrong with it. */
inline void complete(Device* device) {
  const uint64_t mark = device->mark();
  if (mark != 0) device->wait(mark);
}

/** Waits for a device, whatever went wrong on it. */
inline void settle(Device* device) noexcept {
  try {
    device->finish();
  } catch (...) {
  }
}

/** Makes copies and returns when they are done. Where one fails, nothing is running afterwards. */
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
