// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/ir/attributes.h"
#include "hlo/ir/ops.h"
#include "hlo/ops/eval/lanes.h"

/// \file
/// The scalar functions of the elementwise ops, over lanes. Results are not yet rounded to the element type (codec().round
/// or store does that), so that a chain such as a sum may go on in wide form.

namespace collet::hlo::eval {

struct KernelArgs {
  void* out;  ///< may be the same as an input
  const void* in[3];
  int64_t n;
  int bits;  ///< width of the operands' type
};
using Kernel = void (*)(const KernelArgs&);

/// The kernel of an elementwise op whose operand 0 has type `type` (select: operand 1); null when there is none.
Kernel find_kernel(Op op, Type type);
/// compare: total order on doubles is that of every narrower type.
Kernel find_compare(Direction direction, CompareType compare, Type type);
/// Binary kernel of `op` between two values of `type`, as convenient function.
inline void apply(Kernel kernel, int bits, void* out, const void* a, const void* b, int64_t n) {
  kernel({out, {a, b, nullptr}, n, bits});
}

/// A fold of `n` values that is rounded at each step, in row-major order, as the ops of its body say. A long one goes on
/// in wide form and is rounded once: its order is the implementation's, and rounding would tell more of the order than of
/// the sum.
constexpr bool is_short(int64_t n) {
  return n <= 16;
}

// By kind of lane; each returns null for ops that the kind does not have.
Kernel int_kernel(Op op, Kind kind);
Kernel real_kernel(Op op, bool f64);
Kernel complex_kernel(Op op, bool c128);

}  // namespace collet::hlo::eval
