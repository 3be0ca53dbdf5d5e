// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>

/// \file
/// Memory for what comes and goes with each execution: what is given back is kept for the next who asks on the same
/// thread, so that after the first executions nothing is allocated.

namespace collet::runtime {

/// At least `bytes` bytes.
void* allocate_pooled(size_t bytes);
/// On any thread.
void free_pooled(void* place, size_t bytes) noexcept;

template <typename T>
struct PoolAllocator {
  using value_type = T;
  PoolAllocator() = default;
  template <typename U>
  PoolAllocator(const PoolAllocator<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(allocate_pooled(n * sizeof(T))); }
  void deallocate(T* place, size_t n) noexcept { free_pooled(place, n * sizeof(T)); }
  template <typename U>
  bool operator==(const PoolAllocator<U>&) const {
    return true;
  }
};

/// A vector of the length of one execution's lists.
template <typename T, size_t kInline>
using Small = boost::container::small_vector<T, kInline, PoolAllocator<T>>;

}  // namespace collet::runtime
