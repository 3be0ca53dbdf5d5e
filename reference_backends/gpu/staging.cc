// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/staging.h"

namespace collet::gpu {

Staging::Size& Staging::size_of(const Block* block) {
  return block->bytes == small_.bytes ? small_ : large_;
}

/// Allocates more blocks. The caller must hold the mutex. Returns false if the driver has no more pinned memory.
bool Staging::make_more(Size& size) {
  void* slab = nullptr;
  if (driver_.cuMemHostAlloc(&slab, size.bytes * size.each, kMemHostAllocPortable) != CUDA_SUCCESS) return false;
  slabs_.push_back(slab);
  for (size_t i = 0; i < size.each; ++i) {
    auto block = std::make_unique<Block>();
    block->data = static_cast<char*>(slab) + i * size.bytes;
    block->bytes = size.bytes;
    if (driver_.cuEventCreate(&block->event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return i != 0;
    size.spare.push_back(block.get());
    blocks_.push_back(std::move(block));
    ++size.made;
  }
  return true;
}

Staging::Block* Staging::take(uint64_t bytes) {
  Size& size = bytes <= small_.bytes ? small_ : large_;
  std::unique_lock lock(mutex_);
  const auto pop_spare = [&] {
    Block* const block = size.spare.back();
    size.spare.pop_back();
    return block;
  };
  if (!size.spare.empty()) return pop_spare();
  const bool is_pending = !size.pending.empty();
  const auto pop_pending = [&] {
    Block* const block = size.pending.front();
    size.pending.pop_front();
    return block;
  };
  if (is_pending && driver_.cuEventQuery(size.pending.front()->event) == CUDA_SUCCESS) return pop_pending();
  if (size.made < size.most && make_more(size)) return pop_spare();
  if (!is_pending) return nullptr;
  Block* const block = pop_pending();
  lock.unlock();  // other threads need not wait for this copy
  const CUresult waited = driver_.cuEventSynchronize(block->event);
  if (waited == CUDA_SUCCESS) return block;
  give_back(block);
  check_(waited, "cuEventSynchronize");
  return nullptr;
}

void Staging::give_back_behind(Block* block, CUstream stream) {
  const CUresult recorded = driver_.cuEventRecord(block->event, stream);
  if (recorded != CUDA_SUCCESS) driver_.cuStreamSynchronize(stream);
  {
    const std::lock_guard lock(mutex_);
    (recorded == CUDA_SUCCESS ? size_of(block).pending.push_back(block) : size_of(block).spare.push_back(block));
  }
  check_(recorded, "cuEventRecord");
}

void Staging::give_back(Block* block) {
  const std::lock_guard lock(mutex_);
  size_of(block).spare.push_back(block);
}

void Staging::release() noexcept {
  for (const auto& block : blocks_) driver_.cuEventDestroy_v2(block->event);
  for (void* slab : slabs_) driver_.cuMemFreeHost(slab);
  blocks_.clear();
  slabs_.clear();
}

}  // namespace collet::gpu
