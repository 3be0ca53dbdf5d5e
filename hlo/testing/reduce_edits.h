// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "hlo/ir/module.h"

/// \file
/// The edits that reduce_module tries on a module. Each returns whether it changed anything; the caller then checks whether
/// the module is still valid, costs less, and still shows the fault.

namespace collet::hlo::testing {

/// The effort of reading a module. Costs are compared in lexicographic order: number of instructions that
/// compute, number of instructions, number of computations, bytes of results, cost of the constants' text, number of
/// annotations (layouts, metadata, shardings, aliases ...). The reducer keeps a module only if its cost is lower.
using Cost = std::array<int64_t, 6>;
Cost cost_of(const Module& module);
int64_t literal_cost(const Literal& value);
/// Whether an instruction is a constant, a broadcast of a constant, or an after-all without operands.
bool is_filler(const Module& module, const Instruction& instr);

/// The replacement of an instruction: an operand of the same shape, a new parameter of the entry, or zeros.
enum class Replacement : uint8_t { Operand, Parameter, Zero };
/// Replaces the instructions of `which` for which there is such a replacement.
bool substitute(Module& module, CompId c, std::span<const InstrId> which, Replacement how);
/// Inlines the computation of a call or fusion, the body of a while (one iteration), or branch number `branch` of a
/// conditional in place of the instruction.
bool inline_at(Module& module, CompId c, InstrId which, size_t branch);
/// Keeps the entry's first `count` instructions and its parameters. The new result is those of them that have no user.
bool cut_after(Module& module, size_t count);
/// Drops the elements `drop` of the entry's result, which must be a tuple.
bool keep_results(Module& module, std::span<const InstrId> drop);
/// Makes instruction `id` the root of the entry.
bool root_at(Module& module, InstrId id);
/// Drops those of the parameters `drop` that have no user, and numbers the others anew.
bool drop_parameters(Module& module, std::span<const InstrId> drop);
/// Returns the instructions of a computation that have no user and are neither root nor parameter.
std::vector<InstrId> unused(const Module& module, CompId c);
bool drop_instructions(Module& module, std::span<const InstrId> drop);
/// Removes metadata, statistics and the like from all instructions. With `everything` it also removes annotations that
/// affect compilation: shardings, aliases, frontend attributes, control dependencies, backend configs, the schedule.
bool strip(Module& module, bool everything);
bool strip_layouts(Module& module);

/// The replacement of a constant: zeros, ones, or copies of its first element.
enum class Plain : uint8_t { Zero, One, First };
/// Replaces the constants `which`; large ones become broadcasts of a scalar.
bool make_plain(Module& module, std::span<const InstrId> which, Plain how);
/// Replaces broadcasts of scalar constants to small shapes by constants.
bool make_constants(Module& module, std::span<const InstrId> which);

}  // namespace collet::hlo::testing
