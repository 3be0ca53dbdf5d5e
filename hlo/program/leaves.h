// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "hlo/base/hash.h"
#include "hlo/ir/module.h"

namespace collet::hlo {

/// One array, token or opaque of an instruction's result: leaf number `index` after flattening tuples.
struct Leaf {
  InstrId instr = InstrId::None;
  uint32_t index = 0;
  bool operator==(const Leaf&) const = default;
};

struct LeafHash {
  size_t operator()(const Leaf& leaf) const { return collet_hash_number(index_of(leaf.instr), leaf.index); }
};

/// True if the instruction only passes leaves on: tuple, get-tuple-element, and copies of tuples.
bool is_transparent(const Instruction& instr);
/// Returns the leaf from which transparent instructions passed `leaf` on.
Leaf resolve_leaf(const Module& module, Leaf leaf);
/// Returns all leaves of an instruction's result, resolved.
std::vector<Leaf> leaves_of(const Module& module, InstrId instr);
/// Returns the leaves of all operands, in order, resolved.
std::vector<Leaf> operand_leaves(const Module& module, const Instruction& instr);
/// Returns the shape of leaf number `index` of `shape`.
const Shape& leaf_shape(const Shape& shape, uint32_t index);
/// Appends all leaf shapes of `shape`, in order.
void append_leaf_shapes(const Shape& shape, std::vector<Shape>& out);

}  // namespace collet::hlo
