// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "hlo/passes/builder.h"

/// \file
/// Builds ops on arrays of dynamic size: each array is padded to its bounds, and s32 scalars say how much of each
/// dimension is in use. Elements outside are undefined, so ops that would read them mask them first.

namespace collet::hlo {

/// The used size of each dimension: an s32 scalar, or None if the dimension is full. An empty list means that all are full.
using Sizes = std::vector<InstrId>;

/// An op whose operands are padded; its shape is still the one that the program declares.
struct SizedOp {
  const Instruction& instr;
  std::vector<Sizes> sizes;  ///< sizes of each operand
};

/// The replacement of an op: its value with static shapes, and the sizes of each array in it.
struct SizedResult {
  InstrId value = InstrId::None;
  std::vector<Sizes> sizes;
};

/// Builds the op on padded arrays. The builder remembers an error for ops that cannot have dynamic dimensions.
SizedResult build_sized(Builder& b, const SizedOp& op);

/// Returns `x` with the scalar `pad` outside of its sizes.
InstrId mask_outside(Builder& b, InstrId x, const Sizes& sizes, InstrId pad);
/// Returns the used size of dimension `d`: its size scalar, or its bound as a constant if the dimension is full.
InstrId size_or_bound(Builder& b, InstrId x, const Sizes& sizes, size_t d);
/// Returns `shape` with its bounds as static sizes, also inside tuples.
Shape at_bounds(const Shape& shape);

}  // namespace collet::hlo
