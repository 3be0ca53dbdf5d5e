// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "reference_backends/gpu/driver/driver.h"

namespace collet::gpu {

/// Pinned host memory, through which other host memory is copied to and from the device, so that the copies run
/// asynchronously. May be used from any thread with the device's context current.
class Staging {
 public:
  /// A piece of pinned memory.
  struct Block {
    char* data = nullptr;
    uint64_t bytes = 0;
    CUevent event = nullptr;  ///< event that is recorded after the last use of the block
  };
  /// Throws unless a result of the driver is success. The second argument is the name of the driver's function.
  using Check = std::function<void(CUresult, const char*)>;

  Staging(const Driver& driver, Check check) : driver_(driver), check_(std::move(check)) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Returns a block for up to `bytes` bytes. A large copy needs several blocks, see Block::bytes. May wait for a copy
  /// that still uses a block. Returns null if callers hold all blocks, or if the system has no more pinned memory.
  Block* take(uint64_t bytes);
  /// Gives a block back; it is reused when the work that `stream` has now is done.
  void give_back_behind(Block* block, CUstream stream);
  /// Gives a block back that no copy uses any more.
  void give_back(Block* block);
  /// Frees all memory. No copy may use it, and the context must be current.
  void release() noexcept;

 private:
  struct Size {
    uint64_t bytes;
    size_t most;
    size_t each;  ///< number of blocks that are allocated at once
    size_t made = 0;
    std::vector<Block*> spare{};
    std::deque<Block*> pending{};  ///< blocks that wait for their events
  };
  bool make_more(Size& size);
  Size& size_of(const Block* block);

  const Driver& driver_;
  const Check check_;
  std::mutex mutex_;  ///< guards the fields below
  Size small_{4096, 256, 64};
  Size large_{1 << 20, 32, 2};
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<void*> slabs_;
};

}  // namespace collet::gpu
