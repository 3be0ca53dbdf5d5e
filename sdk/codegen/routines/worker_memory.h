// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Loops of routines that threads share, with scratch memory for each thread.

#include <collet/codegen/threads.h>

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

/// Scratch memory of each worker. The caller's is passed in; that of other workers is allocated. Throws std::bad_alloc.
class WorkerMemory {
 public:
  /// `own` is the caller's memory, of `bytes` bytes. `count` is the number of parts of the loop: memory for other
  /// workers is allocated only if it is more than 1.
  WorkerMemory(char* own, size_t bytes, int64_t count, const Threads& threads)
      : own_(own), bytes_((bytes + 63) / 64 * 64) {
    const int others = count > 1 ? threads.count() - 1 : 0;
    if (others > 0) others_ = std::make_unique_for_overwrite<char[]>(bytes_ * static_cast<size_t>(others) + 64);
  }
  char* of(int worker) const {
    if (worker == 0) return own_;
    const size_t shift = 64 - reinterpret_cast<uintptr_t>(others_.get()) % 64;
    return others_.get() + shift + bytes_ * static_cast<size_t>(worker - 1);
  }

 private:
  char* own_;
  size_t bytes_;
  std::unique_ptr<char[]> others_;
};

}  // namespace collet::codegen
