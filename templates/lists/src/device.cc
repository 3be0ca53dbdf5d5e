// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <cstring>
#include <new>

namespace acme {

using collet::kernel::Array;
using collet::kernel::Error;
using collet::kernel::Memory;

namespace {

// Returns a Memory: the slot's generation and its number + 1.
Memory name_of(uint32_t generation, uint32_t slot) {
  return static_cast<uint64_t>(generation) << 32 | (slot + 1);
}
uint32_t slot_of(Memory memory) {
  return static_cast<uint32_t>(memory) - 1;
}
uint32_t generation_of(Memory memory) {
  return static_cast<uint32_t>(memory >> 32);
}

}  // namespace

Device::~Device() {
  for (const Slot& slot : slots_) ::operator delete(slot.data, std::align_val_t(slot.data ? slot.alignment : 64));
}

Memory Device::allocate(uint64_t bytes, uint64_t alignment) {
  auto* data = static_cast<char*>(::operator new(bytes, std::align_val_t(alignment)));
  const std::lock_guard<std::mutex> lock(mutex_);
  if (unused_.empty()) {
    unused_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const uint32_t number = unused_.back();
  unused_.pop_back();
  Slot& slot = slots_[number];
  slot.data = data;
  slot.bytes = bytes;
  slot.alignment = alignment;
  return name_of(slot.generation, number);
}

void Device::free(Memory memory) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint32_t number = slot_of(memory);
  if (number >= slots_.size() || slots_[number].generation != generation_of(memory)) return;
  Slot& slot = slots_[number];
  ::operator delete(slot.data, std::align_val_t(slot.alignment));
  slot.data = nullptr;
  ++slot.generation;
  unused_.push_back(number);
}

char* Device::find(Memory memory, uint64_t offset, uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint32_t number = slot_of(memory);
  if (number >= slots_.size() || slots_[number].generation != generation_of(memory) || !slots_[number].data) {
    throw Error(COLLET_INVALID_ARGUMENT, "memory that does not exist, or no longer");
  }
  const Slot& slot = slots_[number];
  if (!collet_has_range(slot.bytes, offset, bytes)) {
    throw Error(COLLET_OUT_OF_RANGE, "an access beyond the end of a piece of memory");
  }
  return slot.data + offset;
}

void Device::write(Memory to, uint64_t offset, const void* from, uint64_t bytes) {
  std::memcpy(find(to, offset, bytes), from, bytes);
}

void Device::read(Memory from, uint64_t offset, void* to, uint64_t bytes) {
  std::memcpy(to, find(from, offset, bytes), bytes);
}

void Device::copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) {
  std::memcpy(find(to, to_offset, bytes), find(from, from_offset, bytes), bytes);
}

void* Device::at(const Array& array) {
  return array.bytes == 0 ? nullptr : find(array.memory, array.offset, array.bytes);
}

}  // namespace acme
