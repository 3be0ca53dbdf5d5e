// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/memory/memory.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

namespace collet::runtime {
namespace {

// There are eight size classes for each doubling from 64 bytes on, so at most one eighth is wasted.
constexpr int kSmallest = 6;
constexpr uint32_t kClasses = (48 - kSmallest) * 8 + 1;

constexpr size_t kTried = 16;  // most pieces of kept memory that are examined for one whose work has ended

uint32_t class_of(uint64_t bytes) {
  if (bytes <= (uint64_t{1} << kSmallest)) return 0;
  const int top = 63 - std::countl_zero(bytes - 1);  // 2^top < bytes <= 2^(top+1), bytes at least 65
  const auto eighth = static_cast<uint32_t>((bytes - 1) >> (top - 3)) & 7;
  return static_cast<uint32_t>(top - kSmallest) * 8 + eighth + 1;
}

std::atomic<uint64_t> next_pool{0};

Expected<uint32_t> checked_class(uint64_t bytes) {
  const uint32_t size_class = class_of(bytes);
  if (size_class < kClasses) return size_class;
  return resource_exhausted("an array of " + std::to_string(bytes) + " bytes is larger than any memory");
}

uint64_t class_bytes(uint32_t size_class) {
  if (size_class == 0) return uint64_t{1} << kSmallest;
  const uint32_t top = (size_class - 1) / 8 + kSmallest, eighth = (size_class - 1) % 8;
  return (uint64_t{1} << top) + (uint64_t{eighth} + 1) * (uint64_t{1} << (top - 3));
}

}  // namespace

void MemoryRef::drop() {
  Memory* const memory = std::exchange(memory_, nullptr);
  if (memory->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) memory->pool->put(memory);
}

Pool::Pool(std::shared_ptr<Backend> backend, uint32_t device, uint32_t space, MakeRoom make_room, KeepsMuch keeps_much)
    : backend_(std::move(backend)),
      device_(device),
      space_(space),
      make_room_(std::move(make_room)),
      keeps_much_(std::move(keeps_much)),
      free_(kClasses),
      number_(next_pool.fetch_add(1, std::memory_order_relaxed)),
      counts_contents_(backend_->has_residency()) {}

Pool::~Pool() {
  trim();
}

void Pool::count(uint64_t more, uint64_t less) {
  const uint64_t now = in_use_.load(std::memory_order_relaxed) + more - less;
  in_use_.store(now, std::memory_order_relaxed);
  if (now > peak_.load(std::memory_order_relaxed)) peak_.store(now, std::memory_order_relaxed);
}

Memory* Pool::find(uint32_t size_class, const Queue* order) {
  auto& list = free_[size_class];
  const size_t tried = std::min<size_t>(list.size(), kTried);
  for (size_t i = 0; i < tried; ++i) {
    const size_t at = list.size() - 1 - i;
    Memory* memory = list[at];
    if (!memory->uses.only(order)) continue;
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
    return memory;
  }
  return nullptr;
}

void Pool::give_up(Memory* memory) {
  memory->uses.wait();
  backend_->free(memory->handle);
  delete memory;
}

Expected<MemoryRef> Pool::take(uint64_t bytes, const Queue* order) {
  if (bytes == 0) return MemoryRef();
  COLLET_ASSIGN(const uint32_t size_class, checked_class(bytes));
  return take_class(size_class, order);
}

Expected<MemoryRef> Pool::defer(uint64_t bytes) {
  if (bytes == 0) return MemoryRef();
  COLLET_ASSIGN(const uint32_t size_class, checked_class(bytes));
  auto* memory = new Memory;
  memory->size_class = size_class;
  memory->pool = this;
  memory->is_deferred = true;
  return MemoryRef(memory);
}

Expected<MemoryRef> Pool::wrap(const void* host, uint64_t bytes, std::shared_ptr<const void> owner) {
  const auto& where = backend_->devices()[device_].spaces[space_];
  const bool is_visible = (where.flags & COLLET_SPACE_HOST_VISIBLE) != 0;
  if (!is_visible || reinterpret_cast<uintptr_t>(host) % where.alignment != 0)
    return unimplemented("host memory that the device's space cannot be");
  COLLET_TRY(check_runs(backend_->devices()[device_]));
  auto memory = std::make_unique<Memory>();
  COLLET_ASSIGN(collet_backend_buffer* const buffer, backend_->wrap(device_, space_, host, bytes));
  memory->pool = this;
  memory->handle = buffer;
  memory->host = const_cast<void*>(host);
  memory->capacity = bytes;
  memory->owner = std::move(owner);
  change_contents(*memory);
  const std::lock_guard lock(mutex_);
  count(bytes, 0);
  return MemoryRef(memory.release());
}

Status Pool::allocate(Memory& memory) {
  if (!memory.is_deferred) return ok_status();
  const std::lock_guard allocating(allocating_);
  if (memory.capacity != 0) return ok_status();
  COLLET_ASSIGN(MemoryRef taken, take_class(memory.size_class, nullptr));
  memory.handle = taken->handle;
  memory.host = taken->host;
  memory.contents = taken->contents;
  memory.capacity = taken->capacity;
  taken->is_deferred = true;
  taken->capacity = 0;
  return ok_status();
}

bool Pool::move(Memory& from, Memory& to) {
  if (!to.is_deferred || from.owner || from.pool != this || from.size_class != to.size_class) return false;
  const std::lock_guard allocating(allocating_);
  if (to.capacity != 0 || from.capacity == 0 || !from.uses.only(nullptr)) return false;
  to.handle = from.handle;
  to.host = from.host;
  to.capacity = from.capacity;
  to.layout = from.layout;
  to.contents = from.contents;
  to.is_known = from.is_known;
  std::memcpy(to.value, from.value, sizeof to.value);
  from.is_deferred = true;
  from.capacity = 0;
  return true;
}

Expected<MemoryRef> Pool::take_class(uint32_t size_class, const Queue* order) {
  {
    const std::lock_guard lock(mutex_);
    if (Memory* memory = find(size_class, order)) {
      kept_ -= memory->capacity;
      memory->refs.store(1, std::memory_order_relaxed);
      memory->is_deferred = false;
      memory->layout = nullptr;
      memory->is_known = false;
      change_contents(*memory);
      count(memory->capacity, 0);
      return MemoryRef(memory);
    }
  }
  COLLET_TRY(check_runs(backend_->devices()[device_]));
  const uint64_t capacity = class_bytes(size_class);
  const uint64_t alignment = backend_->devices()[device_].spaces[space_].alignment;
  auto made = backend_->alloc(device_, space_, capacity, alignment);
  if (!made.ok() && made.status().code() == Code::ResourceExhausted) {
    make_room_();
    made = backend_->alloc(device_, space_, capacity, alignment);
  }
  if (!made.ok()) return made.status();
  auto* memory = new Memory;
  memory->size_class = size_class;
  memory->pool = this;
  memory->handle = made->buffer;
  memory->host = made->host;
  memory->capacity = capacity;
  change_contents(*memory);
  const std::lock_guard lock(mutex_);
  count(capacity, 0);
  return MemoryRef(memory);
}

void Pool::put(Memory* memory) {
  if (memory->is_deferred && memory->capacity == 0) {
    delete memory;
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    count(0, memory->capacity);
    if (!memory->owner && kept_ + memory->capacity <= kKeptBytes) {
      const bool kept_little = kept_ < kMuch;
      kept_ += memory->capacity;
      memory->kept_since = decays_;
      free_[memory->size_class].push_back(memory);
      if (!kept_little || kept_ < kMuch) return;
      memory = nullptr;
    }
  }
  if (memory)
    give_up(memory);
  else
    keeps_much_();
}

uint64_t Pool::decay() {
  std::vector<Memory*> unused;
  uint64_t kept = 0;
  {
    const std::lock_guard lock(mutex_);
    ++decays_;
    for (auto& list : free_)
      std::erase_if(list, [&](Memory* memory) {
        if (memory->kept_since + 2 > decays_) return false;
        kept_ -= memory->capacity;
        unused.push_back(memory);
        return true;
      });
    kept = kept_;
  }
  for (Memory* memory : unused) give_up(memory);
  return kept;
}

void Pool::trim() {
  std::vector<Memory*> all;
  {
    const std::lock_guard lock(mutex_);
    for (auto& list : free_) {
      all.insert(all.end(), list.begin(), list.end());
      list.clear();
    }
    kept_ = 0;
  }
  for (Memory* memory : all) give_up(memory);
}

}  // namespace collet::runtime
