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

/// The memory of all devices: one range of addresses that the host cannot touch, divided equally. The same memory stands at
/// another address for the emulator itself. Any thread.
class DeviceMemory {
 public:
  /// Reserves addresses; memory is taken when it is touched. The addresses of freed allocations are not used again before later
  /// ones hold `quarantine` bytes of the host's memory, or there are no others. Null and a message where the system refuses.
  static DeviceMemory* create(unsigned devices, uint64_t bytes_each, uint64_t quarantine, std::string& problem);

  uint64_t base() const { return base_; }
  uint64_t size() const { return size_; }  ///< of all devices
  uint64_t bytes_each() const { return bytes_each_; }
  bool contains(uint64_t address) const { return address - base_ < size_; }
  unsigned device_of(uint64_t address) const { return static_cast<unsigned>((address - base_) / bytes_each_); }

  /// Returns the emulator's address for an address of the range.
  uint8_t* host(uint64_t address) const { return host_ + (address - base_); }
  /// The ByteStates from an address on.
  uint8_t* states(uint64_t address) const { return states_ + (address - base_); }
  /// Who accessed the four bytes around an address last, for checks of races: writers in the low half.
  std::atomic<uint64_t>* record(uint64_t address) const { return records_ + (address - base_) / 4; }
  /// Forgets all records.
  void clear_records();

  /// A range of `device`, 256-byte aligned, not yet usable: mark_allocated() makes it so. 0 where there is not enough.
  uint64_t reserve(unsigned device, uint64_t bytes);
  void mark_allocated(uint64_t address);
  /// Makes a range unusable; its addresses are used again some time later. False where no allocation begins there or it was
  /// freed before; `problem` says which.
  bool begin_free(uint64_t address, std::string& problem);
  void finish_free(uint64_t address);
  /// Lets the addresses of all freed allocations be used again: no context is left that could know them.
  void end_quarantine();

  struct Allocation {
    uint64_t address = 0;
    uint64_t bytes = 0;
    bool is_freed = false;
  };
  /// The allocation that holds an address or, failing that, the nearest one before it.
  std::optional<Allocation> find(uint64_t address) const;
  uint64_t free_bytes(unsigned device) const;
  /// The number and the bytes of a device's allocations that are in use.
  std::pair<size_t, uint64_t> in_use(unsigned device) const;
  /// The first of them, or 0.
  uint64_t first_in_use(unsigned device) const;

  /// Says what is wrong with an access of `bytes` at `address`, or nothing. A read wants written bytes where `initialised`.
  std::string problem_of(uint64_t address, uint64_t bytes, bool is_write, bool initialised) const;

 private:
  struct Block {
    uint64_t bytes = 0;
    enum class State : uint8_t { kReserved, kUsed, kFreeing, kFreed } state = State::kReserved;
  };
  /// Addresses of a device that are not in use.
  struct Gaps {
    std::map<uint64_t, uint64_t> by_address;           ///< to bytes
    std::set<std::pair<uint64_t, uint64_t>> by_bytes;  ///< with addresses

    void add(uint64_t address, uint64_t bytes);  ///< joins it with its neighbours
    /// The start of the smallest gap of at least so many bytes, which are taken from it; 0 where there is none.
    uint64_t take(uint64_t bytes);
  };
  struct Freed {
    uint64_t address;
    uint64_t held;  ///< bytes of the host's memory
  };
  DeviceMemory() = default;
  void release_oldest();

  uint64_t base_ = 0, size_ = 0, bytes_each_ = 0, most_quarantined_ = 0;
  uint8_t* host_ = nullptr;
  uint8_t* states_ = nullptr;
  std::atomic<uint64_t>* records_ = nullptr;
  mutable std::mutex mutex_;
  std::map<uint64_t, Block> blocks_;
  std::vector<Gaps> gaps_;        ///< of each device
  std::deque<Freed> quarantine_;  ///< oldest first
  uint64_t quarantined_ = 0;      ///< bytes that they hold
  std::map<unsigned, uint64_t> used_;
};

/// Host memory that kernels may access: what cuMemHostAlloc gave and what was registered. Any thread.
class HostMemory {
 public:
  bool add(void* memory, uint64_t bytes, bool is_ours);
  /// False where it was not added that way.
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
