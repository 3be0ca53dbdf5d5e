// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace collet::bench {

/// What the machine at hand can do, as found by running loops that do nothing else.
struct Peak {
  uint32_t threads = 0;       ///< that were measured together
  double flops_per_ns = 0;    ///< f32 multiply-add, counted as two, by all threads
  double flops_per_ns_1 = 0;  ///< by one
  const char* vectors = "";   ///< the instructions used: "avx512f", "avx2" or "generic"
};

/// The threads that this process may run at once.
uint32_t available_threads();

/// By so many threads; takes about half a second.
Peak measure_peak(uint32_t threads);

/// Nanoseconds that it takes one thread or all `threads`, whichever is faster, to read `read` bytes and write `written` bytes once more, after many times: what
/// fits into caches lies there. The best of several tries.
double measure_stream(uint64_t read, uint64_t written, uint32_t threads);

}  // namespace collet::bench
