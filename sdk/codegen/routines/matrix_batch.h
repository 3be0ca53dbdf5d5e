// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Runs routines on batches of matrices, which threads share.

#include <collet/codegen/array_type.h>
#include <collet/codegen/threads.h>

#include "sdk/codegen/routines/worker_memory.h"

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
  const WorkerMemory memory(own, static_cast<size_t>(bytes), shared ? batch : 1, threads);
  struct Context {
    Body& body;
    const WorkerMemory& memory;
  };
  Context context{body, memory};
  const auto part = [](void* p, int64_t begin, int64_t end, int worker) {
    const Context& c = *static_cast<const Context*>(p);
    char* const at = c.memory.of(worker);
    for (int64_t b = begin; b < end; ++b) c.body(b, at);
  };
  if (shared) {
    threads.loop(batch, 1, part, &context);
  } else {
    part(&context, 0, batch, 0);
  }
}

}  // namespace collet::codegen
