// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

namespace collet::hlo {

/// What an evaluation may ask of whoever walks the module (hlo/eval).
class EvalContext {
 public:
  virtual ~EvalContext() = default;
  /// Runs a computation on `arguments`; its root's value.
  virtual Expected<Literal> call(CompId computation, std::span<const Literal> arguments) = 0;
  /// This participant, and how many there are.
  virtual int64_t replica() const { return 0; }
  virtual int64_t partition() const { return 0; }
  /// Exchange with the other participants: blocks until all of the op's participants have come with their operands.
  virtual Expected<Literal> communicate(const Instruction& instr, std::span<const Literal> operands) = 0;
  /// Custom calls by registry; UNIMPLEMENTED with the target's name when it is unknown.
  virtual Expected<Literal> custom_call(const Instruction& instr, std::span<const Literal> operands) = 0;
  /// Queues of the host.
  virtual Expected<Literal> infeed(const Shape& shape) = 0;
  virtual Status outfeed(const Literal& value) = 0;
  /// The 128-bit counter of rng and rng-get-and-update-state: returns it, then adds `delta`.
  virtual std::pair<uint64_t, uint64_t> next_rng_state(uint64_t delta) = 0;
  /// True when the caller wants to stop; asked in loops.
  virtual bool cancelled() const { return false; }
};

/// One evaluation. Operands have exactly the shapes of the instruction's operands; the result must have the
/// instruction's shape.
struct EvalInput {
  const Module& module;
  const Instruction& instr;
  std::span<const Literal> operands;
  EvalContext& context;
  const Literal& operand(size_t i) const { return operands[i]; }
};

/// What the instruction computes: integers exactly and wrapping, floats in at least double precision and rounded once.
/// The module has been verified.
Expected<Literal> evaluate(const EvalInput& input);

}  // namespace collet::hlo
