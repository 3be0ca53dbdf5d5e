// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "hlo/passes/rewriter.h"

/// \file
/// The rules of simplify, grouped by topic. A rule gets one instruction, whose operands have been simplified, and
/// returns a simpler replacement that has the same bits for every input (NaN payloads aside). It returns None if it
/// does not apply. A rule must make progress by a measure that no other rule reverses: fewer or smaller instructions,
/// or an op moved to where there are fewer elements.

namespace collet::hlo {

struct RuleInput {
  Module& module;
  Builder& b;
  const Instruction& instr;
  size_t most;  ///< most instructions that the module may have after inlining

  InstrId operand(size_t i) const { return instr.operand(i); }
  const Instruction& at(size_t i) const { return module[instr.operand(i)]; }
  const Literal* splat(size_t i) const { return splat_value(module, instr.operand(i)); }
  /// True if all elements of operand i are `value` (for complex: with imaginary part 0); +0 and -0 differ.
  bool is(size_t i, double value) const;
  bool is_int(size_t i, int64_t value) const;
  /// Returns the result as a broadcast of one value. None if a dimension is dynamic, because a broadcast would lose its
  /// size.
  InstrId all(double value) const;
  InstrId all_int(int64_t value) const;
};

struct Rule {
  Op op;  ///< INVALID: any op
  std::string_view law;
  InstrId (*apply)(const RuleInput&);
};

std::span<const Rule> arithmetic_rules();
std::span<const Rule> movement_rules();
std::span<const Rule> structure_rules();
std::span<const Rule> window_rules();

}  // namespace collet::hlo
