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

/// Pinned memory of the host, through which copies from and to other memory of the host go: such copies run by themselves. Any
/// thread, with the device's context current.
class Staging {
 public:
  /// A piece of pinned memory.
  struct Block {
    char* data = nullptr;
    uint64_t bytes = 0;
    CUevent event = nullptr;  ///< behind what used it last
  };
  /// Throws unless a result of the driver is success; the second argument is the driver's function.
  using Check = std::function<void(CUresult, const char*)>;

  Staging(const Driver& driver, Check check) : driver_(driver), check_(std::move(check)) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// A block for up to `bytes` bytes; large numbers are served in pieces, see Block::bytes. May wait for a copy that still uses one. Null
  /// where all of them are held by callers, or the system gives no more.
  Block* take(uint64_t bytes);
  /// The block is used again when what `stream` has by now has ended.
  void give_back_behind(Block* block, CUstream stream);
  /// Nothing uses the block any more.
  void give_back(Block* block);
  /// Gives all memory back. Nothing uses it, and the context is current.
  void release() noexcept;

 private:
  struct Size {
    uint64_t bytes;
    size_t most;
    size_t each;  ///< so many are made at once
    size_t made = 0;
    std::vector<Block*> spare{};
    std::deque<Block*> pending{};  ///< behind their events
  };
  bool make_more(Size& size);
  Size& size_of(const Block* block);

  const Driver& driver_;
  const Check check_;
  std::mutex mutex_;  ///< of what follows
  Size small_{4096, 256, 64};
  Size large_{1 << 20, 32, 2};
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<void*> slabs_;
};

}  // namespace collet::gpu
