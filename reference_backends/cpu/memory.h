// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace collet::cpu {

/// Blocks of memory, of which large ones are kept for the next who asks: fresh pages cost more than most kernels.
class Memory {
 public:
  ~Memory();
  /// At least `bytes` at a multiple of `alignment`; null when there is no room.
  void* allocate(uint64_t bytes, uint64_t alignment);
  /// `bytes` as it was asked for.
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
  std::map<uint64_t, std::vector<void*>> idle_;  ///< by size
  uint64_t idle_bytes_ = 0;
  Statistics statistics_;
};

}  // namespace collet::cpu
