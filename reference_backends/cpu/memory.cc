// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/cpu/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

namespace collet::cpu {
namespace {

constexpr uint64_t kHuge = uint64_t{2} << 20;
constexpr uint64_t kPooled = uint64_t{32} << 10;  ///< bytes; smaller blocks come from malloc
/// Alignment of pooled blocks in bytes. Processors compare only the low 12 bits of the addresses of loads and of earlier
/// stores first. A loop that writes y[i] would be slowed down if x[i + 1] had the same low bits.
constexpr uint64_t kPage = 4096;
/// Bytes of idle memory; what is beyond this is returned to the system. The SDK keeps blocks of which runs have need again.
constexpr uint64_t kKept = uint64_t{64} << 20;

/// Rounds up to the size of a pooled block: a multiple of 1/8 of the next lower power of two, so that little is wasted.
uint64_t rounded(uint64_t bytes) {
  if (bytes < kPooled) return (bytes + 63) / 64 * 64;
  uint64_t power = uint64_t{1} << (63 - __builtin_clzll(bytes));
  uint64_t step = std::max(power / 8, kPage);
  return (bytes + step - 1) / step * step;
}

}  // namespace

Memory::~Memory() {
  for (auto& [size, blocks] : idle_) {
    for (void* b : blocks) std::free(b);
  }
}

void* Memory::fresh(uint64_t size, uint64_t alignment) {
  if (size >= kPooled) alignment = std::max(alignment, size >= kHuge ? kHuge : kPage);
  void* p = nullptr;
  if (posix_memalign(&p, std::max<uint64_t>(alignment, 64), size) != 0) return nullptr;
  if (size >= kHuge) madvise(p, size, MADV_HUGEPAGE);
  return p;
}

void* Memory::allocate(uint64_t bytes, uint64_t alignment, uint32_t device) {
  if (bytes > (uint64_t{1} << 46)) return nullptr;
  const uint64_t size = rounded(std::max<uint64_t>(bytes, 1));
  std::lock_guard lock(mutex_);
  void* p = nullptr;
  auto found = idle_.find(size);
  if (found != idle_.end() && !found->second.empty() && alignment <= 64) {
    p = found->second.back();
    found->second.pop_back();
    idle_bytes_ -= size;
  } else {
    p = fresh(size, alignment);
    if (!p && idle_bytes_ > 0) {  // return idle memory to the system, then try again
      for (auto& [s, blocks] : idle_) {
        for (void* b : blocks) std::free(b);
        blocks.clear();
      }
      idle_bytes_ = 0;
      p = fresh(size, alignment);
    }
    if (!p) return nullptr;
  }
  Statistics& statistics = statistics_[device];
  statistics.in_use += size;
  statistics.peak = std::max(statistics.peak, statistics.in_use);
  ++statistics.allocations;
  return p;
}

void Memory::release(void* block, uint64_t bytes, uint32_t device) {
  const uint64_t size = rounded(std::max<uint64_t>(bytes, 1));
  std::lock_guard lock(mutex_);
  Statistics& statistics = statistics_[device];
  statistics.in_use -= size;
  --statistics.allocations;
  if (size < kPooled || idle_bytes_ + size > kKept) {
    std::free(block);
    return;
  }
  idle_[size].push_back(block);
  idle_bytes_ += size;
}

Memory::Statistics Memory::statistics(uint32_t device) const {
  std::lock_guard lock(mutex_);
  const auto found = statistics_.find(device);
  return found == statistics_.end() ? Statistics{} : found->second;
}

}  // namespace collet::cpu
