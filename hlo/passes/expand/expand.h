// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

/// \file
/// Expansions: how an op that a device does not have is written with simpler ones, one file per family of ops. They need
/// not end at core ops at once: what they use and the device lacks is expanded in the next round.

namespace collet::hlo {

struct ExpandInput {
  Module& module;
  Builder& b;
  const Instruction& instr;

  InstrId operand(size_t i) const { return instr.operand(i); }
  const Shape& shape() const { return instr.shape; }
  Type type() const { return instr.shape.type(); }
  const Shape& operand_shape(size_t i) const { return module[instr.operand(i)].shape; }
  template <typename T>
  const T& as() const {
    return instr.as<T>();
  }
};

/// Returns the replacement of the instruction; for several results a `tuple` of them. None: there is no expansion of this form (the
/// fallback will run it), unless the builder holds an error.
using Expander = InstrId (*)(const ExpandInput&);

struct Expansion {
  Op op;
  Expander expand;
};

/// Expands what `table` has and context.claim says to; true if anything was.
Expected<bool> expand_by_table(Module& module, PassContext& context, std::span<const Expansion> table);

using Ints = std::vector<int64_t>;
inline Ints to_ints(std::span<const int64_t> values) {
  return {values.begin(), values.end()};
}
/// 0, 1, ..., n - 1.
Ints counting(int64_t n, int64_t first = 0);
/// The permutation that undoes `permutation`.
Ints inverse_permutation(std::span<const int64_t> permutation);
/// f32 for narrower floats, else the type itself: what a computation of several roundings runs in.
Type wide_float(Type type);

}  // namespace collet::hlo
