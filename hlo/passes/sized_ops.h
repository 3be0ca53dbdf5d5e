// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "hlo/passes/builder.h"

/// \file
/// Ops on arrays that hold less than their bounds: each array is padded to its bounds, and scalars of s32 say how much
/// of each dimension is in use. What lies outside is undefined, so that ops which would see it mask it first.

namespace collet::hlo {

/// The used size of each dimension: an s32 scalar, or None if the dimension is full. An empty list means that all are full.
using Sizes = std::vector<InstrId>;

/// An op, with operands that are padded, and whose shape is as the program declares it.
struct SizedOp {
  const Instruction& instr;
  std::vector<Sizes> sizes;  ///< of each operand
};

/// The replacement of an op: its value in static shapes, and the sizes of each array in it.
struct SizedResult {
  InstrId value = InstrId::None;
  std::vector<Sizes> sizes;
};

/// Builds the op on padded arrays. The builder remembers an error for ops that cannot have dynamic dimensions.
SizedResult build_sized(Builder& b, const SizedOp& op);

/// `x` with the scalar `pad` outside of its sizes.
InstrId mask_outside(Builder& b, InstrId x, const Sizes& sizes, InstrId pad);
/// The size of dimension `d`, whether it is full or not.
InstrId size_or_bound(Builder& b, InstrId x, const Sizes& sizes, size_t d);
/// `shape` with its bounds as sizes, in tuples too.
Shape at_bounds(const Shape& shape);

}  // namespace collet::hlo
