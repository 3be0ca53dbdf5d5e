// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Runs routines on batches of matrices, which threads share.

#include <collet/codegen/array_type.h>
#include <collet/codegen/threads.h>

#include <cstdlib>
#include <memory>
#include <new>

namespace collet::codegen {

/// Returns the number of matrices in an array: the product of all dimensions but the last two.
inline int64_t batch_of(const Dims& dims) {
  int64_t batch = 1;
  for (size_t d = 0; d + 2 < dims.size(); ++d) batch *= dims[d];
  return batch;
}

/// Calls body(b, work) for each matrix b of a batch. `ns` is the estimated time of one call. `work` has `bytes` bytes
/// that no other call uses at the same time: `own` for the caller, and allocated memory for other threads. Throws
/// std::bad_alloc.
template <typename Body>
void for_each_matrix(int64_t batch, double ns, char* own, int64_t bytes, Threads& threads, Body body) {
  if (batch == 0) return;
  const bool shared = batch > 1 && threads.count() > 1 && threads.worthwhile(ns * static_cast<double>(batch));
  struct Context {
    Body& body;
    char* own;
    char* others;
    int64_t bytes;
  };
  const auto step = (static_cast<size_t>(bytes) + 63) / 64 * 64;
  const size_t all = step * static_cast<size_t>(shared ? threads.count() - 1 : 0);
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  std::unique_ptr<char, Free> work(all ? static_cast<char*>(std::aligned_alloc(64, all)) : nullptr);
  if (all && !work) throw std::bad_alloc();
  Context context{body, own, work.get(), static_cast<int64_t>(step)};
  const auto part = [](void* p, int64_t begin, int64_t end, int worker) {
    const Context& c = *static_cast<const Context*>(p);
    char* const at = worker == 0 || c.bytes == 0 ? c.own : c.others + (worker - 1) * c.bytes;
    for (int64_t b = begin; b < end; ++b) c.body(b, at);
  };
  if (shared) {
    threads.loop(batch, 1, part, &context);
  } else {
    part(&context, 0, batch, 0);
  }
}

}  // namespace collet::codegen
