// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "hlo/ir/module.h"

namespace collet::hlo {

/// One array, token or opaque of an instruction's result: number `index` of its leaves, tuples flattened.
struct Leaf {
  InstrId instr = InstrId::None;
  uint32_t index = 0;
  bool operator==(const Leaf&) const = default;
};

struct LeafHash {
  size_t operator()(const Leaf& leaf) const {
    return (uint64_t{index_of(leaf.instr)} << 20 ^ leaf.index) * 0x9E3779B97F4A7C15ull >> 11;
  }
};

/// The instruction only passes leaves on: tuple, get-tuple-element, and copies of tuples.
bool is_transparent(const Instruction& instr);
/// The leaf that `leaf` is, seen through transparent instructions.
Leaf resolve_leaf(const Module& module, Leaf leaf);
/// All leaves of an instruction's result, resolved.
std::vector<Leaf> leaves_of(const Module& module, InstrId instr);
/// Leaves of all operands, in order, resolved.
std::vector<Leaf> operand_leaves(const Module& module, const Instruction& instr);
/// Shape of leaf number `index` of `shape`.
const Shape& leaf_shape(const Shape& shape, uint32_t index);
/// All leaf shapes of `shape`, in order.
void append_leaf_shapes(const Shape& shape, std::vector<Shape>& out);

}  // namespace collet::hlo
