// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "hlo/passes/rewriter.h"

/// \file
/// The rules of simplify, by theme. A rule looks at one instruction, whose operands have been simplified, and gives what
/// may stand for it: something simpler that has the same bits for every input (NaN payloads aside). None: it does not
/// apply. A rule must make progress by some measure that no other rule undoes: fewer or smaller instructions, an op moved
/// towards where there are fewer elements.

namespace collet::hlo {

struct RuleInput {
  Module& module;
  Builder& b;
  const Instruction& instr;
  size_t most;  ///< how many instructions the module may come to by writing out what is called

  InstrId operand(size_t i) const { return instr.operand(i); }
  const Instruction& at(size_t i) const { return module[instr.operand(i)]; }
  const Literal* splat(size_t i) const { return splat_value(module, instr.operand(i)); }
  /// All elements of operand i are `value` (for complex: with no imaginary part); a zero's sign counts.
  bool is(size_t i, double value) const;
  bool is_int(size_t i, int64_t value) const;
  /// The whole result, of one value. None where a dimension is dynamic: a broadcast would lose its size.
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
