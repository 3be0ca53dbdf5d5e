// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace collet::gpu::emulator {

/// The states of a byte of device memory.
enum ByteState : uint8_t { kByteAllocated = 1, kByteWritten = 2 };

/// The memory of all devices: one range of addresses that host code cannot access, divided equally among the devices.
/// The emulator itself accesses the same memory at another address. May be used from any thread.
class DeviceMemory {
 public:
  /// Reserves the range of addresses; the system provides memory when it is first touched. Addresses of a freed
  /// allocation are reused only when allocations that were freed later hold `quarantine` bytes of host memory, or when
  /// there are no other addresses. Returns null and a message if the system refuses.
  static DeviceMemory* create(unsigned devices, uint64_t bytes_each, uint64_t quarantine, std::string& problem);

  uint64_t base() const { return base_; }
  uint64_t size() const { return size_; }  ///< bytes of all devices together
  uint64_t bytes_each() const { return bytes_each_; }
  bool contains(uint64_t address) const { return address - base_ < size_; }
  unsigned device_of(uint64_t address) const { return static_cast<unsigned>((address - base_) / bytes_each_); }

  /// Returns the emulator's address for an address of the range.
  uint8_t* host(uint64_t address) const { return host_ + (address - base_); }
  /// Returns the ByteStates of the bytes from an address on.
  uint8_t* states(uint64_t address) const { return states_ + (address - base_); }
  /// Returns the record of who last accessed the four bytes around an address, for the detection of races: the last
  /// write in the low half, the last read in the high half.
  std::atomic<uint64_t>* record(uint64_t address) const { return records_ + (address - base_) / 4; }
  /// Clears all records.
  void clear_records();

  /// Reserves a range of `device`, aligned to 256 bytes. It may be used only after mark_allocated(). Returns 0 if there
  /// is not enough memory.
  uint64_t reserve(unsigned device, uint64_t bytes);
  void mark_allocated(uint64_t address);
  /// Makes an allocation invalid; its addresses are reused some time after finish_free(). Returns false if no
  /// allocation begins there or if it was freed before; `problem` tells which.
  bool begin_free(uint64_t address, std::string& problem);
  void finish_free(uint64_t address);
  /// Allows reuse of the addresses of all freed allocations, because no context is left in which they were known.
  void end_quarantine();

  struct Allocation {
    uint64_t address = 0;
    uint64_t bytes = 0;
    bool is_freed = false;
  };
  /// Returns the allocation that contains an address or, if none does, the nearest one before it.
  std::optional<Allocation> find(uint64_t address) const;
  uint64_t free_bytes(unsigned device) const;
  /// Returns the number and the total bytes of the device's live allocations.
  std::pair<size_t, uint64_t> in_use(unsigned device) const;
  /// Returns the address of the device's first live allocation, or 0.
  uint64_t first_in_use(unsigned device) const;

  /// Returns what is wrong with an access of `bytes` bytes at `address`; empty if nothing is. If `initialised`, a read
  /// must not read bytes that nobody has written.
  std::string problem_of(uint64_t address, uint64_t bytes, bool is_write, bool initialised) const;

 private:
  struct Block {
    uint64_t bytes = 0;
    enum class State : uint8_t { kReserved, kUsed, kFreeing, kFreed } state = State::kReserved;
  };
  /// The unused address ranges of a device.
  struct Gaps {
    std::map<uint64_t, uint64_t> by_address;           ///< size in bytes by address
    std::set<std::pair<uint64_t, uint64_t>> by_bytes;  ///< pairs (size in bytes, address)

    void add(uint64_t address, uint64_t bytes);  ///< merges the range with adjacent gaps
    /// Takes `bytes` from the start of the smallest gap that is large enough, and returns their address; 0 if there is
    /// none.
    uint64_t take(uint64_t bytes);
  };
  struct Freed {
    uint64_t address;
    uint64_t held;  ///< bytes of host memory that the freed allocation holds
  };
  DeviceMemory() = default;
  void release_oldest();

  uint64_t base_ = 0, size_ = 0, bytes_each_ = 0, most_quarantined_ = 0;
  uint8_t* host_ = nullptr;
  uint8_t* states_ = nullptr;
  std::atomic<uint64_t>* records_ = nullptr;
  mutable std::mutex mutex_;
  std::map<uint64_t, Block> blocks_;
  std::vector<Gaps> gaps_;        ///< one for each device
  std::deque<Freed> quarantine_;  ///< oldest first
  uint64_t quarantined_ = 0;      ///< bytes that the allocations in quarantine_ hold
  std::map<unsigned, uint64_t> used_;
};

/// The host memory that kernels may access: memory of cuMemHostAlloc and registered memory. May be used from any
/// thread.
class HostMemory {
 public:
  bool add(void* memory, uint64_t bytes, bool is_ours);
  /// Returns false if the memory was not added with the same `is_ours`.
  bool remove(void* memory, bool is_ours, uint64_t* bytes);
  bool contains(uint64_t address, uint64_t bytes) const;

 private:
  struct Range {
    uint64_t bytes;
    bool is_ours;
  };
  mutable std::mutex mutex_;
  std::map<uint64_t, Range> ranges_;
};

}  // namespace collet::gpu::emulator
