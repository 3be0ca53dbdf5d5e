// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/launch_plan.h>
#include <collet/codegen/threads.h>

#include <memory>

#include "sdk/codegen/launch/functions.h"

namespace collet::codegen {

/// Flags of the order of a sort by key. What is not a number and zeros stand in total order without them.
inline constexpr int64_t kSortEqualZeros = 1;  ///< -0 is 0
inline constexpr int64_t kSortEqualNaNs = 2;   ///< all of them come behind infinity
inline constexpr int64_t kSortButForNaN = 4;   ///< rows that have one are sorted by the comparator

/// A routine of a RoutineCall, written in C++, with all its parameters bound.
class Routine {
 public:
  virtual ~Routine() = default;
  /// `buffers`: operands, results, then scratch memory of `scratch_bytes`. Any thread; several at a time.
  virtual void run(char* const* buffers, Threads& threads) const = 0;
  virtual uint64_t scratch_bytes() const { return 0; }
};

/// The routine of a call; null for an opcode that has none, and for factorizations without LAPACK. `compare` is needed only where it runs.
std::unique_ptr<Routine> make_routine(const RoutineCall& call, CompareFunction compare = nullptr);

std::unique_ptr<Routine> make_sort(const RoutineCall& call, CompareFunction compare);
std::unique_ptr<Routine> make_topk(const RoutineCall& call);
std::unique_ptr<Routine> make_random_bits(const RoutineCall& call);
std::unique_ptr<Routine> make_random_state(const RoutineCall& call);
std::unique_ptr<Routine> make_fft(const RoutineCall& call);
std::unique_ptr<Routine> make_cholesky(const RoutineCall& call);
std::unique_ptr<Routine> make_triangular_solve(const RoutineCall& call);
/// Null where there is no LAPACK.
std::unique_ptr<Routine> make_factorization(const RoutineCall& call);

}  // namespace collet::codegen
