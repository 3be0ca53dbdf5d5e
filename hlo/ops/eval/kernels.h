// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/ir/attributes.h"
#include "hlo/ir/ops.h"
#include "hlo/ops/eval/lanes.h"

/// \file
/// The scalar functions of the elementwise ops, on arrays of elements in wide form (lanes, see lanes.h). Results are
/// not yet rounded to the element type (codec().round or store does that), so that a chain of steps such as a sum may
/// continue in wide form.

namespace collet::hlo::eval {

struct KernelArgs {
  void* out;  ///< may be the same as an input
  const void* in[3];
  int64_t n;
  int bits;  ///< width of the operands' type
};
using Kernel = void (*)(const KernelArgs&);

/// Returns the kernel of an elementwise op whose operand 0 has type `type` (for select: operand 1); null if there is
/// none.
Kernel find_kernel(Op op, Type type);
/// Returns the kernel of compare. The total order of a narrower float type is that of doubles.
Kernel find_compare(Direction direction, CompareType compare, Type type);
/// Applies a binary kernel to `n` elements.
inline void apply(Kernel kernel, int bits, void* out, const void* a, const void* b, int64_t n) {
  kernel({out, {a, b, nullptr}, n, bits});
}

/// True if a reduction of `n` values is short. A short reduction is rounded at each step, in row-major order, as the
/// ops of its body say, see held_type. A long one is computed in wide form and rounded once: its order is implementation-defined, so
/// rounding at each step would only add errors that depend on the order.
constexpr bool is_short(int64_t n) {
  return n <= 16;
}

/// Returns the type to which a short reduction by one op is rounded at each step: floats narrower than f32 are held in f32, as
/// docs/programs.md says.
inline Type held_type(Type type) {
  return is_float(type) && type_info(type).bits < 32 ? Type::F32 : type;
}

// The kernels by kind of lane; each function returns null for ops that do not support the kind.
Kernel int_kernel(Op op, Kind kind);
Kernel real_kernel(Op op, bool f64);
Kernel complex_kernel(Op op, bool c128);

}  // namespace collet::hlo::eval
