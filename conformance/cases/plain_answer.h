// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "hlo/ir/module.h"

namespace collet::conformance {

/// Where the program is an op of its parameters, or a few, that copies elements or gives exact results of single ones, or a transform,
/// factorization or normalization, the results: computed as docs/ops.md says and nothing faster, with no part of the evaluator. Nothing where
/// the op is none of these, or leaves a choice.
std::optional<std::vector<hlo::Literal>> plain_answer(const hlo::Module& module, std::span<const hlo::Literal> inputs);

/// Parts of it, by family. Nothing for an op of another one.
std::optional<hlo::Literal> plain_move(const hlo::Instruction& instr, std::span<const hlo::Literal* const> operands);
std::optional<hlo::Literal> plain_elements(const hlo::Instruction& instr,
                                           std::span<const hlo::Literal* const> operands);

std::optional<std::vector<hlo::Literal>> plain_algebra(const hlo::Instruction& instr,
                                                       std::span<const hlo::Literal* const> operands);

/// An exact op on an element of each operand (of one operand: twice the same) into an element of the result.
using PlainFunction = void (*)(hlo::Literal& out, int64_t to, const hlo::Literal& a, int64_t i, const hlo::Literal& b,
                               int64_t j);
/// Null where `op` is none for operands of `type`.
PlainFunction plain_function(hlo::Op op, hlo::Type type);

/// A scatter of one operand. A null `function`: the update takes the place.
hlo::Literal plain_scatter(const hlo::Instruction& instr, std::span<const hlo::Literal* const> operands,
                           PlainFunction function);

/// Copies an element of the same type.
void copy_element(hlo::Literal& to, int64_t at, const hlo::Literal& from, int64_t index);

}  // namespace collet::conformance
