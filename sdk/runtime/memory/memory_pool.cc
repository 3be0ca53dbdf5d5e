// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/memory/memory_pool.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace collet::runtime {
namespace {

// Size classes are powers of two.
constexpr size_t kSmallest = 64, kLargest = size_t{1} << 18;
constexpr size_t kClasses = std::countr_zero(kLargest) - std::countr_zero(kSmallest) + 1;
constexpr size_t kKeptBytes = size_t{1} << 18;  // most bytes that are kept per class

struct Place {
  Place* next;
};

struct Class {
  Place* first = nullptr;
  size_t count = 0;
};

// The classes of this thread. Null before its first use and after its end, because a buffer in a static variable may be
// freed after the thread's own variables. A plain pointer, because this is on the hot path.
thread_local constinit Class* classes = nullptr;

struct ThreadPool {
  Class of_size[kClasses];

  ThreadPool() { classes = of_size; }
  ~ThreadPool() {
    classes = nullptr;
    for (const Class& c : of_size)
      for (Place* p = c.first; p;) ::operator delete(static_cast<void*>(std::exchange(p, p->next)));
  }
};

// Creates the classes of this thread. After they have been destroyed they are not created again.
[[gnu::noinline]] Class* make_classes() {
  thread_local ThreadPool spare;
  (void)spare;
  return classes;
}

size_t class_of(size_t bytes) {
  return static_cast<size_t>(std::countr_zero(std::bit_ceil(std::max(bytes, kSmallest))) - std::countr_zero(kSmallest));
}

}  // namespace

void* allocate_pooled(size_t bytes) {
  if (bytes > kLargest) return ::operator new(bytes);
  const size_t size = class_of(bytes);
  if (!classes || !classes[size].first) return ::operator new(kSmallest << size);
  Class& c = classes[size];
  --c.count;
  return std::exchange(c.first, c.first->next);
}

void free_pooled(void* place, size_t bytes) noexcept {
  if (bytes > kLargest) return ::operator delete(place);
  const size_t size = class_of(bytes);
  Class* const mine = classes ? classes : make_classes();
  if (!mine || (mine[size].count + 1) * (kSmallest << size) > kKeptBytes) return ::operator delete(place);
  Class& c = mine[size];
  c.first = new (place) Place{c.first};
  ++c.count;
}

}  // namespace collet::runtime
