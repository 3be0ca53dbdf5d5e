// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>

/// \file
/// Memory for objects that exist during one execution. Freed memory is kept for later requests of the same thread, so
/// after the first executions nothing is allocated.

namespace collet::runtime {

/// Allocates at least `bytes` bytes.
void* allocate_pooled(size_t bytes);
/// Frees memory; may be called on any thread.
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

/// A vector for the lists of one execution; up to kInline elements need no allocation.
template <typename T, size_t kInline>
using Small = boost::container::small_vector<T, kInline, PoolAllocator<T>>;

}  // namespace collet::runtime
