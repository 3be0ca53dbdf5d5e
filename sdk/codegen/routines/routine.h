// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/launch_plan.h>
#include <collet/codegen/threads.h>

#include <memory>

#include "sdk/codegen/base/functions.h"

namespace collet::codegen {

/// Flags of the order of a sort by key. Without them zeros of both signs and NaNs are in the total order of IEEE 754.
inline constexpr int64_t kSortEqualZeros = 1;  ///< -0 equals 0
inline constexpr int64_t kSortEqualNaNs = 2;   ///< all NaNs are equal and come after infinity
inline constexpr int64_t kSortButForNaN = 4;   ///< rows that contain a NaN are sorted by the comparator instead

/// A routine that is written in C++, with the parameters of one RoutineCall.
class Routine {
 public:
  virtual ~Routine() = default;
  /// Runs the routine. `buffers` are the addresses of operands, results, and scratch memory of `scratch_bytes`. May be
  /// called by several threads at once.
  virtual void run(char* const* buffers, Threads& threads) const = 0;
  virtual uint64_t scratch_bytes() const { return 0; }
};

/// Returns the routine of a call; null for an opcode that has none, and for factorizations without LAPACK. `compare`
/// may be null if the routine is not run.
std::unique_ptr<Routine> make_routine(const RoutineCall& call, CompareFunction compare = nullptr);

std::unique_ptr<Routine> make_sort(const RoutineCall& call, CompareFunction compare);
std::unique_ptr<Routine> make_topk(const RoutineCall& call);
std::unique_ptr<Routine> make_random_bits(const RoutineCall& call);
std::unique_ptr<Routine> make_random_state(const RoutineCall& call);
std::unique_ptr<Routine> make_fft(const RoutineCall& call);
std::unique_ptr<Routine> make_cholesky(const RoutineCall& call);
std::unique_ptr<Routine> make_triangular_solve(const RoutineCall& call);
/// Returns null if there is no LAPACK.
std::unique_ptr<Routine> make_factorization(const RoutineCall& call);

}  // namespace collet::codegen
