// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace collet::bench {

/// Peak speed of this machine, measured by loops of independent multiply-adds.
struct Peak {
  uint32_t threads = 0;       ///< number of threads that were measured together
  double flops_per_ns = 0;    ///< f32 operations of all threads together; a multiply-add counts as two
  double flops_per_ns_1 = 0;  ///< the same for one thread
  const char* vectors = "";   ///< the instructions used: "avx512f", "avx2" or "generic"
};

/// Returns the number of threads that this process may run at once.
uint32_t available_threads();

/// Measures the peak with one thread and with `threads` threads. Takes about half a second.
Peak measure_peak(uint32_t threads);

/// Measures the time in ns to read `read` bytes and write `written` bytes of an array, by one thread or by `threads` threads,
/// whichever is faster. The pass is repeated many times, so data that fit into caches are in them. Returns the best of several
/// measurements.
double measure_stream(uint64_t read, uint64_t written, uint32_t threads);

}  // namespace collet::bench
