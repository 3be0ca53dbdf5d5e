// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/tables.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/contract/contract.h"

/// \file
/// C++ wrappers that own the handles of a backend's table. They check each call for what every call promises: the returned code and
/// the error's code agree, the message has an end, and a successful call does not write to the error.

namespace collet::conformance {

using Bytes = std::vector<uint8_t>;

bool is_utf8(std::string_view text);

/// Makes a call that can fail, with an error that is filled with garbage, and checks the error afterwards. `what` names the call in
/// messages; `message` receives the error's message.
template <typename Function>
collet_status checked_call(Contract& c, const char* what, Function function, std::string* message = nullptr) {
  collet_error error;
  std::memset(static_cast<void*>(&error), 0x5a, sizeof error);
  collet_error before = error;
  const collet_status status = function(&error);
  if (status == COLLET_OK) {
    c.check(std::memcmp(&error, &before, sizeof error) == 0, Promise::ERROR_WRITTEN, "{} succeeded and wrote an error",
            what);
    return status;
  }
  if (status == COLLET_UNAVAILABLE) c.note_lost(what, {error.message, strnlen(error.message, sizeof error.message)});
  c.check(status > 0 && status <= COLLET_DATA_LOSS, Promise::STATUS, "{} returned {}, which is no code", what, status);
  c.check(error.code == status, Promise::ERRORS, "{} returned {} and an error with the code {}", what, status,
          error.code);
  const size_t length = strnlen(error.message, sizeof error.message);
  const bool ended = c.check(length < sizeof error.message, Promise::ERROR_ENDED, "{}: the message has no end", what);
  c.check(!ended || is_utf8({error.message, length}), Promise::ERROR_ENDED, "{}: the message is no UTF-8", what);
  c.check(length > 0, Promise::ERRORS, "{} failed without a word", what);
  if (message != nullptr && ended) *message = error.message;
  return status;
}

class Instance;

/// A buffer of an instance; freed with its owner.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Instance* owner, collet_backend_buffer* handle, uint8_t* host, uint64_t bytes, uint32_t device)
      : owner_(owner), handle_(handle), host_(host), bytes_(bytes), device_(device) {}
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { reset(); }
  void reset();

  explicit operator bool() const { return handle_ != nullptr; }
  collet_backend_buffer* handle() const { return handle_; }
  uint8_t* host() const { return host_; }  ///< null if the host cannot access it
  uint64_t bytes() const { return bytes_; }
  uint32_t device() const { return device_; }

 private:
  Instance* owner_ = nullptr;
  collet_backend_buffer* handle_ = nullptr;
  uint8_t* host_ = nullptr;
  uint64_t bytes_ = 0;
  uint32_t device_ = 0;
};

/// A copy of the results of device_info for a device.
struct Device {
  uint32_t traits = 0;
  std::string kind, fingerprint;
  std::vector<collet_memory_space> spaces;
  std::vector<collet_type_support> types;
  std::vector<uint32_t> peers;
  uint32_t default_space = 0;

  bool has(uint32_t trait) const { return (traits & trait) != 0; }
  uint64_t alignment() const { return spaces[default_space].alignment; }
  uint32_t type_flags(uint32_t type) const;
};

/// An open instance. `open` returns null if the backend's open failed, and then has recorded a failure of the case.
class Instance {
 public:
  static std::unique_ptr<Instance> open(Contract& c, uint32_t device_count = 0, bool or_fewer = false);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  Contract& contract() const { return c_; }
  const collet_backend& table() const { return c_.plugin().table(); }
  collet_backend_instance* handle() const { return handle_; }
  uint32_t opset() const { return opset_; }
  const std::vector<Device>& devices() const { return devices_; }
  const Device& device(uint32_t number = 0) const { return devices_[number]; }
  /// True if a device has COLLET_TRAIT_SERIAL: only one call may be made at a time.
  bool serial() const;
  /// True if programs can be executed: no device has COLLET_TRAIT_VIRTUAL.
  bool executes() const;

  /// Allocates a buffer. If alloc fails, returns an empty one and records a failure. `alignment` 0: the space's alignment.
  Buffer alloc(uint64_t bytes, uint32_t device = 0, uint64_t alignment = 0);
  Buffer alloc_in(uint32_t device, uint32_t space, uint64_t bytes, uint64_t alignment);
  collet_status try_alloc(uint32_t device, uint32_t space, uint64_t bytes, uint64_t alignment, Buffer& out);
  /// Makes one call of copy, and records a failure if it fails.
  bool copy(std::span<const collet_copy_region> regions);
  bool write(const Buffer& to, uint64_t offset, const void* from, uint64_t bytes);
  bool write(const Buffer& to, const Bytes& from) { return write(to, 0, from.data(), from.size()); }
  bool read(const Buffer& from, uint64_t offset, void* to, uint64_t bytes);
  Bytes read(const Buffer& from);
  /// Returns an optional table of at least `bytes` bytes; null if there is none. Less than the size of a table today is
  /// what it had when it was introduced.
  template <typename Table>
  const Table* query(const char* name, uint32_t bytes = sizeof(Table)) const {
    return static_cast<const Table*>(find_table(name, bytes));
  }

 private:
  explicit Instance(Contract& c) : c_(c) {}
  bool describe(uint32_t number);
  const void* find_table(const char* name, uint32_t bytes) const;

  Contract& c_;
  collet_backend_instance* handle_ = nullptr;
  uint32_t opset_ = 0;
  std::vector<Device> devices_;
};

collet_place at(const Buffer& buffer, uint64_t offset = 0);
collet_place at_host(const void* host, uint64_t offset = 0);
collet_copy_region region(const collet_place& from, const collet_place& to, uint64_t bytes);

/// The options of open with the plugin's own pairs of name and value; valid as long as this object exists.
class OpenOptions {
 public:
  explicit OpenOptions(const Plugin& plugin);
  void add(const char* key, const char* value);
  collet_open_options* get();

 private:
  std::vector<const char*> keys_, values_;
  collet_open_options options_{};
};

/// Returns pseudo-random bytes; another `seed` gives other bytes.
Bytes pattern(uint64_t bytes, uint64_t seed);
/// Returns the index of the first difference; SIZE_MAX if there is none.
size_t first_difference(std::span<const uint8_t> a, std::span<const uint8_t> b);

/// Returns the bytes of the heap in use by all threads together.
uint64_t heap_bytes();
/// Returns the resident bytes of the process.
uint64_t resident_bytes();
/// The increase of the heap and of the resident memory by one cycle of calls.
struct Growth {
  double heap = 0, resident = 0;  ///< bytes per cycle: the smaller of the means of the two halves of the measurement
  double always = 0;  ///< bytes of the heap per cycle, in the one of sixteen groups of cycles with the smallest growth
};
/// Calls `cycle` about three times `cycles` times: first to warm up, then, in sixteen groups, to measure. A table of a library that
/// grows now and then increases `heap`, but not `always`. Returns zeros if a call returns false, and under a sanitizer.
Growth measure_growth(int cycles, const std::function<bool()>& cycle);

/// Calls `function` with 0 ... count-1, each on its own thread.
void on_threads(int count, const std::function<void(int)>& function);

}  // namespace collet::conformance
