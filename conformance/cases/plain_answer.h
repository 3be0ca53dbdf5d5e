// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "conformance/cases/plain_interpreter.h"
#include "hlo/ir/module.h"

namespace collet::conformance {

using hlo::Instruction;
using hlo::Literal;
using hlo::Module;
using hlo::Op;
using hlo::Shape;
using hlo::Type;

/// Computes the results of a program that copies elements, computes exact results elementwise, or consists of
/// transforms, factorizations, normalizations and random bits, with loops, branches and calls around them. It follows
/// docs/ops.md literally, without optimisation, and uses no part of the evaluator. Returns nullopt if an op is none of
/// these, or if its result is not fully determined.
std::optional<std::vector<Literal>> plain_answer(const Module& module, std::span<const Literal> inputs);

/// Returns the results of one op. `interpreter` runs the computations that it calls.
std::optional<std::vector<Literal>> plain_results(const PlainInterpreter& interpreter, const Instruction& instr,
                                                  std::span<const Literal* const> operands);

/// The parts of plain_results by family; each returns nullopt for an op of another family.
std::optional<Literal> plain_move(const Instruction& instr, std::span<const Literal* const> operands);
std::optional<Literal> plain_elements(const Instruction& instr, std::span<const Literal* const> operands);
/// Likewise, with a result of another shape than the instruction's: applies an op on scalars to each element of arrays.
std::optional<Literal> plain_elements(const Instruction& instr, const Shape& shape,
                                      std::span<const Literal* const> operands);

std::optional<std::vector<Literal>> plain_algebra(const Instruction& instr, std::span<const Literal* const> operands);

/// Computes random bits by Philox and Threefry.
std::optional<std::vector<Literal>> plain_random(const Instruction& instr, std::span<const Literal* const> operands);

/// True if plain_move copies the elements of this op unchanged.
bool is_move(Op op);

/// A function that computes an exact op from one element of each operand (for a unary op both are the same) and stores
/// an element of the result.
using PlainFunction = void (*)(Literal& out, int64_t to, const Literal& a, int64_t i, const Literal& b, int64_t j);
/// Returns the function of `op` for operands of `type`; null if the op is not exact.
PlainFunction plain_function(Op op, Type type);

/// Calls `each` with an index of the result and the number of an update that is combined with it, for all updates in
/// bounds.
void for_each_update(const Instruction& scatter, std::span<const Literal* const> operands,
                     const std::function<void(int64_t to, int64_t update)>& each);
/// Calls `each` with the index that each window of a select-and-scatter selects, and the number of the window. Returns
/// false if the op selects neither the largest nor the smallest element, or if that is not determined.
bool for_each_selected(const Module& module, const Instruction& instr, std::span<const Literal* const> operands,
                       const std::function<void(int64_t to, int64_t window)>& each);

/// Computes a scatter of one operand. With a null `function` the update replaces the element.
Literal plain_scatter(const Instruction& instr, std::span<const Literal* const> operands, PlainFunction function);

/// Returns whether the total order of floats is specified for all elements. The place of a NaN without a sign is not.
bool has_total_order(const Literal& value);
/// Returns the bits of a float as a number that increases in total order: -NaN, -infinity ... -0, +0 ... +NaN.
int64_t total_key(const Literal& value, int64_t i);

/// Copies an element of the same type.
void copy_element(Literal& to, int64_t at, const Literal& from, int64_t index);

}  // namespace collet::conformance
