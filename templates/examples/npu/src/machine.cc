// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

#include <cstring>
#include <new>

namespace npu {

using kernel::Error;

kernel::Memory Device::allocate(uint64_t bytes, uint64_t alignment) {
  const std::lock_guard<std::mutex> lock(allocation_);
  const uint64_t left = kMemoryBytes - used_;
  if (bytes > left) {
    throw Error(COLLET_RESOURCE_EXHAUSTED,
                std::to_string(bytes) + " bytes, where " + std::to_string(left) + " of the machine's memory are free");
  }
  const uint64_t aligned_to = std::max(alignment, kAlignment);
  const auto at = reinterpret_cast<Memory>(::operator new(bytes, std::align_val_t(aligned_to)));
  blocks_[at] = {bytes, aligned_to};
  used_ += bytes;
  return at;
}

void Device::free(Memory memory) noexcept {
  const std::lock_guard<std::mutex> lock(allocation_);
  const auto block = blocks_.find(memory);
  if (block == blocks_.end()) return;
  used_ -= block->second.bytes;
  ::operator delete(at(memory), std::align_val_t(block->second.alignment));
  blocks_.erase(block);
}

void Device::write(Memory to, uint64_t offset, const void* from, uint64_t bytes) {
  std::memcpy(at(to) + offset, from, bytes);
}
void Device::read(Memory from, uint64_t offset, void* to, uint64_t bytes) {
  std::memcpy(to, at(from) + offset, bytes);
}
void Device::copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) {
  std::memcpy(at(to) + to_offset, at(from) + from_offset, bytes);
}

}  // namespace npu
