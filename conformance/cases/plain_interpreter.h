// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "hlo/ir/literal.h"
#include "hlo/ir/module.h"

namespace collet::conformance {

/// A known value: an array, or a tuple of values.
struct Known {
  hlo::Literal value = {};  ///< invalid for a tuple
  hlo::Literal radius =
      {};  ///< f64: largest distance of each element from `value`, which then is f64, too; invalid if `value` is exact
  std::vector<Known> parts = {};
  bool is_tuple = false;

  bool is_exact() const { return !radius.valid(); }
};

/// Runs computations of a module op by op, as docs/ops.md says: control flow and tuples itself, all other ops by a
/// function. It shares no code with the evaluator, so that it can be used to check it.
class PlainInterpreter {
 public:
  /// Returns the results of an op other than control flow; nullopt if they are not known.
  using OpFunction = std::function<std::optional<std::vector<Known>>(const PlainInterpreter&, const hlo::Instruction&,
                                                                     std::span<const Known* const>)>;
  PlainInterpreter(const hlo::Module& module, OpFunction function) : module_(module), function_(std::move(function)) {}

  const hlo::Module& module() const { return module_; }
  /// Runs a computation; nullopt if an op's results are not known, or a condition is not exact.
  std::optional<Known> run(hlo::CompId id, std::vector<Known> arguments) const;

 private:
  std::optional<Known> step(const hlo::Instruction& instr, std::span<const Known* const> operands) const;
  std::optional<Known> loop(const hlo::Instruction& instr, Known state) const;
  std::optional<Known> branch(const hlo::Instruction& instr, std::span<const Known* const> operands) const;

  const hlo::Module& module_;
  OpFunction function_;
  mutable std::vector<std::vector<Known>> frames_;  // value tables of computations that have ended, for reuse
};

}  // namespace collet::conformance
