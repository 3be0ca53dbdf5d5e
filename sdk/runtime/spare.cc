// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/spare.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace collet::runtime {
namespace {

// Powers of two.
constexpr size_t kSmallest = 64, kLargest = size_t{1} << 18;
constexpr size_t kClasses = std::countr_zero(kLargest) - std::countr_zero(kSmallest) + 1;
constexpr size_t kKeptBytes = size_t{1} << 18;  // of a class

struct Place {
  Place* next;
};

// What outlives the thread's own variables, a buffer that a static holds on to, is given back when this is gone.
thread_local bool gone = false;

struct Spare {
  struct {
    Place* first = nullptr;
    size_t count = 0;
  } classes[kClasses];

  ~Spare() {
    gone = true;
    for (const auto& c : classes)
      for (Place* p = c.first; p;) ::operator delete(static_cast<void*>(std::exchange(p, p->next)));
  }
};
thread_local Spare spare;

size_t class_of(size_t bytes) {
  return static_cast<size_t>(std::countr_zero(std::bit_ceil(std::max(bytes, kSmallest))) - std::countr_zero(kSmallest));
}

}  // namespace

void* take_spare(size_t bytes) {
  if (bytes > kLargest) return ::operator new(bytes);
  const size_t size = class_of(bytes);
  if (gone || !spare.classes[size].first) return ::operator new(kSmallest << size);
  auto& c = spare.classes[size];
  --c.count;
  return std::exchange(c.first, c.first->next);
}

void give_spare(void* place, size_t bytes) noexcept {
  if (bytes > kLargest || gone) return ::operator delete(place);
  const size_t size = class_of(bytes);
  auto& c = spare.classes[size];
  if ((c.count + 1) * (kSmallest << size) > kKeptBytes) return ::operator delete(place);
  c.first = new (place) Place{c.first};
  ++c.count;
}

}  // namespace collet::runtime
