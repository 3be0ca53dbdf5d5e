// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "conformance/cases/plain_interpreter.h"
#include "hlo/ir/module.h"

namespace collet::conformance {

/// Computes the results of a program that copies elements, gives exact results of single ones, or consists of transforms, factorizations,
/// normalizations and random bits, with loops, branches and calls around them: as docs/ops.md says and nothing faster, with no part of the
/// evaluator. Returns nullopt where an op is none of these, or leaves a choice.
std::optional<std::vector<hlo::Literal>> plain_answer(const hlo::Module& module, std::span<const hlo::Literal> inputs);

/// The results of one op. `interpreter` runs what it calls.
std::optional<std::vector<hlo::Literal>> plain_results(const PlainInterpreter& interpreter,
                                                       const hlo::Instruction& instr,
                                                       std::span<const hlo::Literal* const> operands);

/// Parts of it, by family. Nothing for an op of another one.
std::optional<hlo::Literal> plain_move(const hlo::Instruction& instr, std::span<const hlo::Literal* const> operands);
std::optional<hlo::Literal> plain_elements(const hlo::Instruction& instr,
                                           std::span<const hlo::Literal* const> operands);

std::optional<std::vector<hlo::Literal>> plain_algebra(const hlo::Instruction& instr,
                                                       std::span<const hlo::Literal* const> operands);

/// Random bits by Philox and Threefry.
std::optional<std::vector<hlo::Literal>> plain_random(const hlo::Instruction& instr,
                                                      std::span<const hlo::Literal* const> operands);

/// Whether plain_move moves elements whole, whatever they are.
bool is_move(hlo::Op op);

/// An exact op on an element of each operand (of one operand: twice the same) into an element of the result.
using PlainFunction = void (*)(hlo::Literal& out, int64_t to, const hlo::Literal& a, int64_t i, const hlo::Literal& b,
                               int64_t j);
/// Null where `op` is none for operands of `type`.
PlainFunction plain_function(hlo::Op op, hlo::Type type);

/// Calls `each` with a place in the result and the number of an update that is combined with it, for all updates that are inside.
void for_each_update(const hlo::Instruction& scatter, std::span<const hlo::Literal* const> operands,
                     const std::function<void(int64_t to, int64_t update)>& each);
/// Likewise with the place that each window of a select-and-scatter selects, and the number of the window. Returns false where it does not
/// select the first of the largest elements, or the largest is not determined.
bool for_each_selected(const hlo::Module& module, const hlo::Instruction& instr,
                       std::span<const hlo::Literal* const> operands,
                       const std::function<void(int64_t to, int64_t window)>& each);

/// A scatter of one operand. A null `function`: the update takes the place.
hlo::Literal plain_scatter(const hlo::Instruction& instr, std::span<const hlo::Literal* const> operands,
                           PlainFunction function);

/// The bits of a float as a number that grows with the total order: -NaN, -infinity ... -0, +0 ... +NaN.
int64_t total_key(const hlo::Literal& value, int64_t i);

/// Copies an element of the same type.
void copy_element(hlo::Literal& to, int64_t at, const hlo::Literal& from, int64_t index);

}  // namespace collet::conformance
