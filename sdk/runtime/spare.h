// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>

/// \file
/// Memory for what comes and goes with each execution: what is given back is kept for the next who asks on the same
/// thread, so that after the first executions nothing is allocated.

namespace collet::runtime {

/// At least `bytes` bytes.
void* take_spare(size_t bytes);
/// On any thread.
void give_spare(void* place, size_t bytes) noexcept;

template <typename T>
struct SpareAllocator {
  using value_type = T;
  SpareAllocator() = default;
  template <typename U>
  SpareAllocator(const SpareAllocator<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(take_spare(n * sizeof(T))); }
  void deallocate(T* place, size_t n) noexcept { give_spare(place, n * sizeof(T)); }
  template <typename U>
  bool operator==(const SpareAllocator<U>&) const {
    return true;
  }
};

/// A vector of the length of one execution's lists.
template <typename T, size_t kInline>
using Small = boost::container::small_vector<T, kInline, SpareAllocator<T>>;

}  // namespace collet::runtime
