// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "hlo/ir/module.h"

/// \file
/// The form that flatten_tuples makes, and whether a computation is in it.

namespace collet::hlo {

/// The role of a computation for its caller.
enum class Role : uint8_t { None, Entry, Condition, Body, Inlined, Plain };
Role role_of(Op op, size_t which);

/// A tuple of tuples of tuples can ask for any number of arrays in a few lines: no more than these.
constexpr int64_t kMostLeaves = int64_t{1} << 20;

std::vector<Shape> leaf_shapes(const Shape& shape);
/// The leaves of `shape` as one tuple.
Shape flat_tuple(const Shape& shape);
bool is_flat_tuple(const Shape& shape);
/// Ops whose first operand is the op that they wait for.
bool awaits(Op op);
bool takes_tuple(Op op);
bool is_flat_instr(const Module& module, const Instruction& instr, Role role, bool is_root);
bool is_flat(const Module& module, CompId c, Role role);

}  // namespace collet::hlo
