// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace collet::cpu {

/// Allocates memory. Large blocks are kept when they are released and reused, because touching fresh pages takes longer
/// than most kernels.
class Memory {
 public:
  ~Memory();
  /// Returns at least `bytes` bytes at a multiple of `alignment`; null if there is no memory.
  void* allocate(uint64_t bytes, uint64_t alignment);
  /// `bytes` must be the size that was requested.
  void release(void* block, uint64_t bytes);

  struct Statistics {
    uint64_t in_use = 0;
    uint64_t peak = 0;
    uint64_t allocations = 0;
  };
  Statistics statistics() const;

 private:
  void* fresh(uint64_t size, uint64_t alignment);

  mutable std::mutex mutex_;
  std::map<uint64_t, std::vector<void*>> idle_;  ///< idle blocks by size
  uint64_t idle_bytes_ = 0;
  Statistics statistics_;
};

}  // namespace collet::cpu
