// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace collet::cpu {

/// Allocates memory. Large blocks are kept when they are released and reused, because touching fresh pages takes longer
/// than most kernels. All devices share the idle blocks; what is in use is counted by device.
class Memory {
 public:
  ~Memory();
  /// Returns at least `bytes` bytes at a multiple of `alignment`; null if there is no memory.
  void* allocate(uint64_t bytes, uint64_t alignment, uint32_t device);
  /// `bytes` and `device` must be those of the request.
  void release(void* block, uint64_t bytes, uint32_t device);

  struct Statistics {
    uint64_t in_use = 0;
    uint64_t peak = 0;
    uint64_t allocations = 0;
  };
  Statistics statistics(uint32_t device) const;

 private:
  void* fresh(uint64_t size, uint64_t alignment);

  mutable std::mutex mutex_;
  std::map<uint64_t, std::vector<void*>> idle_;  ///< idle blocks by size
  uint64_t idle_bytes_ = 0;
  std::map<uint32_t, Statistics> statistics_;  ///< by device
};

}  // namespace collet::cpu
