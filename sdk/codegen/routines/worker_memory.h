// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Loops of routines that threads share, with scratch memory for each thread.

#include <collet/codegen/threads.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace collet::codegen {

/// Calls body(i, worker) for each i below `count`. `ns` is the estimated time of one call.
template <typename Body>
void for_each_part(int64_t count, double ns, Threads& threads, Body body) {
  const auto part = [](void* p, int64_t begin, int64_t end, int worker) {
    for (int64_t i = begin; i < end; ++i) (*static_cast<Body*>(p))(i, worker);
  };
  if (count > 1 && threads.count() > 1 && threads.worthwhile(ns * static_cast<double>(count))) {
    threads.loop(count, 1, part, &body);
  } else {
    part(&body, 0, count, 0);
  }
}

/// Scratch memory of each worker of one loop. The caller's is passed in; that of other workers is allocated. Throws std::bad_alloc.
class WorkerMemory {
 public:
  /// `own` is the caller's memory, of `bytes` bytes. `count` is the number of parts of the loop: no more workers than that get
  /// memory.
  WorkerMemory(char* own, size_t bytes, int64_t count, const Threads& threads)
      : own_(own), bytes_((bytes + 63) / 64 * 64) {
    const int64_t workers = threads.count();
    if (count <= 1 || workers <= 1 || bytes_ == 0) return;
    // The caller may have no part, so that `count` other workers have one.
    const auto others = static_cast<size_t>(std::min(count, workers - 1));
    others_ = std::make_unique_for_overwrite<char[]>(bytes_ * others + 64);
    places_ = std::make_unique<int64_t[]>(static_cast<size_t>(workers));
  }
  /// Returns the memory of a worker that has a part. Workers may call this at the same time.
  char* of(int worker) const {
    if (worker == 0 || bytes_ == 0) return own_;
    int64_t& place = places_[static_cast<size_t>(worker)];
    if (place == 0) place = taken_.fetch_add(1, std::memory_order_relaxed) + 1;
    const size_t shift = 64 - reinterpret_cast<uintptr_t>(others_.get()) % 64;
    return others_.get() + shift + bytes_ * static_cast<size_t>(place - 1);
  }

 private:
  char* own_;
  size_t bytes_;
  std::unique_ptr<char[]> others_;
  std::unique_ptr<int64_t[]> places_;  ///< by worker: the number of its memory in others_, from 1; 0 while it has none
  mutable std::atomic<int64_t> taken_{0};
};

}  // namespace collet::codegen
