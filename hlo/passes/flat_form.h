// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "hlo/ir/module.h"

/// \file
/// Describes the form that the pass flatten_tuples produces, in which tuples appear only where an op needs them, and
/// checks whether a computation has that form.

namespace collet::hlo {

/// How a computation is used by its callers; this determines where it may have tuples.
enum class Role : uint8_t { None, Entry, Condition, Body, Inlined, Plain };
Role role_of(Op op, size_t which);

/// The largest number of arrays in one tuple. A short program text can nest tuples so that they hold arbitrarily many
/// arrays.
constexpr int64_t kMostLeaves = int64_t{1} << 20;

std::vector<Shape> leaf_shapes(const Shape& shape);
/// The leaves of `shape` as one tuple.
Shape flat_tuple(const Shape& shape);
bool is_flat_tuple(const Shape& shape);
/// True for ops such as all-reduce-done, whose first operand is the op that they wait for.
bool awaits(Op op);
bool takes_tuple(Op op);
bool is_flat_instr(const Module& module, const Instruction& instr, Role role, bool is_root);
bool is_flat(const Module& module, CompId c, Role role);

}  // namespace collet::hlo
