// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "reference_backends/gpu/driver/driver_api.h"

namespace collet::gpu {

/// Device memory for the work of library calls, which share it because they run one after the other. The caller
/// serialises all functions.
class WorkAreas {
 public:
  /// Allocates device memory; throws if there is not enough.
  using Allocate = std::function<CUdeviceptr(uint64_t bytes)>;

  explicit WorkAreas(Allocate allocate) : allocate_(std::move(allocate)) {}

  /// Returns memory of at least `bytes` bytes, which stays allocated; 0 for no bytes.
  CUdeviceptr get(uint64_t bytes) {
    if (bytes == 0) return 0;
    const auto found = by_bytes_.lower_bound(bytes);
    if (found != by_bytes_.end()) return found->second;
    // With powers of two, all areas together have at most twice the bytes of the largest one.
    const uint64_t rounded = std::bit_ceil(std::max(bytes, kLeast));
    const CUdeviceptr made = allocate_(rounded);
    by_bytes_.emplace(rounded, made);
    return made;
  }
  /// Appends the memory to a list. The owner of this object frees it.
  void list(std::vector<CUdeviceptr>& out) const {
    for (const auto& [bytes, area] : by_bytes_) out.push_back(area);
  }

 private:
  static constexpr uint64_t kLeast = uint64_t{1} << 16;

  const Allocate allocate_;
  std::map<uint64_t, CUdeviceptr> by_bytes_;
};

}  // namespace collet::gpu
