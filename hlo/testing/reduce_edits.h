// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "hlo/ir/module.h"

/// \file
/// What the reducer may do to a module. Each edit says whether it did anything; whether the module is still valid, and
/// worth having, is asked afterwards.

namespace collet::hlo::testing {

/// What a module costs to look at, the heaviest first; only what lowers it is taken.
using Cost = std::array<int64_t, 6>;
Cost cost_of(const Module& module);
int64_t literal_cost(const Literal& value);
/// A constant, or as good as one.
bool is_filler(const Module& module, const Instruction& instr);

/// What takes an instruction's place: an operand of its shape, a new parameter of the entry, zeros.
enum class Stand : uint8_t { Operand, Parameter, Zero };
bool substitute(Module& module, CompId c, std::span<const InstrId> which, Stand how);
/// A call, fusion, one trip of a loop, one branch, in place of the op.
bool inline_at(Module& module, CompId c, InstrId which, size_t branch);
/// Keeps the entry's first `count` instructions; its result is whatever of them nobody uses.
bool cut_after(Module& module, size_t count);
/// Drops elements of the entry's result.
bool keep_results(Module& module, std::span<const InstrId> drop);
bool root_at(Module& module, InstrId id);
/// Those of `drop` that nothing uses.
bool drop_parameters(Module& module, std::span<const InstrId> drop);
/// What has no user in its computation and is neither root nor parameter.
std::vector<InstrId> unused(const Module& module, CompId c);
bool drop_instructions(Module& module, std::span<const InstrId> drop);
/// Metadata and the like; `everything`: also what could matter to a compiler.
bool strip(Module& module, bool everything);
bool strip_layouts(Module& module);

/// What a constant becomes: zeros, ones, its first element throughout.
enum class Plain : uint8_t { Zero, One, First };
bool make_plain(Module& module, std::span<const InstrId> which, Plain how);
/// Small broadcasts of constants are constants themselves.
bool make_constants(Module& module, std::span<const InstrId> which);

}  // namespace collet::hlo::testing
