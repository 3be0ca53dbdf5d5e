// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

namespace collet::hlo {

/// The services that the evaluator of modules (hlo/eval) provides to the evaluation of one op. Participants are numbered
/// replica * partition_count + partition.
class EvalContext {
 public:
  virtual ~EvalContext() = default;
  /// Runs a computation on `arguments`, from which it may move, and returns its root's value.
  virtual Expected<Literal> call(CompId computation, std::span<Literal> arguments) = 0;
  /// The number of this participant's replica and partition, and how many there are.
  virtual int64_t replica() const { return 0; }
  virtual int64_t partition() const { return 0; }
  virtual int64_t replica_count() const { return 1; }
  virtual int64_t partition_count() const { return 1; }
  /// Sends `operands` to every member of `group`, to which this participant belongs, and waits for theirs. Returns the operands
  /// of each member, in the group's order.
  virtual Expected<std::vector<std::vector<Literal>>> exchange(const Instruction& instr, std::span<const int64_t> group,
                                                               std::span<const Literal> operands);
  /// Sends `value` to participant `target` on `channel`. Does not wait.
  virtual Status send(int64_t channel, int64_t target, Literal value);
  /// Waits for a value that was sent to this participant on `channel`.
  virtual Expected<Literal> receive(int64_t channel);
  /// Evaluates a custom call that hlo/ops does not know; UNIMPLEMENTED with the target's name if it is not known here either.
  virtual Expected<Literal> custom_call(const Instruction& instr, std::span<const Literal> operands);
  /// The infeed and outfeed queues of the host.
  virtual Expected<Literal> infeed(const Shape& shape);
  virtual Status outfeed(const Literal& value);
  /// Returns the 128-bit counter (low, high) of rng and rng-get-and-update-state, then adds `delta` to it.
  virtual std::pair<uint64_t, uint64_t> next_rng_state(uint64_t delta) = 0;
  /// True if the evaluation should stop; loops call this.
  virtual bool cancelled() const { return false; }
  /// True if the evaluator should make the other choice wherever an op leaves one, for tests: long sums are rounded at
  /// each step and short ones at the end, elements that a sort may leave in either order are in the other one, and undefined
  /// elements have other bytes: those of the factor of a matrix that is not positive definite, too.
  virtual bool other_choices() const { return false; }
  /// Number of threads that one op may use.
  virtual int threads() const { return 1; }
};

/// The input of one evaluation. Operands have exactly the shapes of the instruction's operands; the result must have
/// the instruction's shape. Operands may be moved from: data without other owners is updated in place.
struct EvalInput {
  const Module& module;
  const Instruction& instr;
  std::span<Literal> operands;
  EvalContext& context;
  const Literal& operand(size_t i) const { return operands[i]; }
  size_t operand_count() const { return operands.size(); }
};

/// Evaluates one instruction of a verified module. Integers are exact and wrap around. Floats are computed in at least double
/// precision and rounded once. Scatters, and reductions of up to 16 values, are rounded after each value, in row-major order, as
/// their bodies say. Longer reductions are rounded once.
/// Returns the value or an error.
Expected<Literal> evaluate(const EvalInput& input);

}  // namespace collet::hlo
