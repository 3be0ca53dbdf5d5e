// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

/// \file
/// Expansions rewrite an op that a device does not support into simpler ops; there is one file per family of ops. The
/// result need not consist of core ops: an op in it that the device does not support either is expanded in the next
/// round.

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

/// Returns the replacement of the instruction; for several results a `tuple` of them. Returns None if the op has no
/// expansion in this form (the fallback backend then runs it), or if the builder holds an error.
using Expander = InstrId (*)(const ExpandInput&);

struct Expansion {
  Op op;
  Expander expand;
};

/// Expands the instructions whose ops are in `table` and for which context.claim answers Expand. Returns true if any
/// was expanded.
Expected<bool> expand_by_table(Module& module, PassContext& context, std::span<const Expansion> table);

using Ints = std::vector<int64_t>;
inline Ints to_ints(std::span<const int64_t> values) {
  return {values.begin(), values.end()};
}
/// Returns n consecutive numbers: first, first + 1, ...
Ints counting(int64_t n, int64_t first = 0);
/// Returns the inverse of `permutation`.
Ints inverse_permutation(std::span<const int64_t> permutation);
/// Returns f32 for narrower floats, else the type itself: the type in which computations with several roundings are
/// done.
Type wide_float(Type type);

}  // namespace collet::hlo
