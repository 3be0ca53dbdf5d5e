// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "hlo/passes/builder.h"
#include "hlo/passes/passes.h"

/// \file
/// Helpers with which passes traverse and change a module. A Rewriter rewrites a computation forward: it takes all
/// instructions out of the order and returns them one after another with their operands already replaced. The pass
/// keeps each instruction, or replaces it by new instructions that it builds at that point. Replaced instructions need
/// not be removed; instructions that become dead are left to eliminate_dead.
///
///     Rewriter rewriter(module, computation);
///     for (InstrId id : rewriter.instructions()) {
///       const Instruction& instr = rewriter.enter(id);
///       if (instr.op == Op::COPY) rewriter.replace(id, instr.operand(0)); else rewriter.keep(id);
///     }
///     changed |= rewriter.finish();

namespace collet::hlo {

class Rewriter {
 public:
  Rewriter(Module& module, CompId computation);
  Rewriter(const Rewriter&) = delete;
  Rewriter& operator=(const Rewriter&) = delete;

  /// The instructions in their order before the rewrite.
  const std::vector<InstrId>& instructions() const { return old_; }
  /// Returns `id` with its operands and control predecessors replaced. It is in no computation until keep or replace is
  /// called.
  Instruction& enter(InstrId id);
  /// Keeps `id`, at this point of the order.
  void keep(InstrId id) { module_[computation_].order.push_back(id); }
  /// Replaces uses of `id` by `with`, which is in the computation already.
  void replace(InstrId id, InstrId with);
  /// Returns the current replacement of `id`.
  InstrId now(InstrId id) const;
  /// The builder that inserts at the current point.
  Builder& builder() { return builder_; }
  /// Replaces the root; true if anything was replaced. Call it at the end, also after an error.
  bool finish();

 private:
  Module& module_;
  CompId computation_;
  std::vector<InstrId> old_;
  std::unordered_map<uint32_t, InstrId> replaced_;
  Builder builder_;
};

/// Replaces the instructions of flow_computations() for which `wanted` is true by what `make` builds. `wanted` is
/// called for all instructions of a computation before any of them is replaced. If `make` returns InstrId::None, the
/// instruction stays. Returns true if any was replaced; an error of the builder begins with the instruction's name.
Expected<bool> rewrite_wanted(Module& module, const std::function<bool(InstrId)>& wanted,
                              const std::function<InstrId(Builder&, const Instruction&)>& make);

/// Returns all computations that the entry reaches, callees before callers.
std::vector<CompId> post_order(const Module& module);
/// True for control flow and plain calls: their bodies run as parts of the program. A composite counts as an ordinary
/// op.
bool is_flow(const Instruction& instr);
/// Returns the entry and the bodies of control flow and plain calls, callees before callers. Combiners, comparators,
/// fusions and the bodies of composites are not included.
std::vector<CompId> flow_computations(const Module& module);
/// Sorts module.computations() in the order of post_order; computations that the entry does not reach are removed.
void order_computations(Module& module);
/// Copies a computation within its module; the copy calls the same computations.
CompId clone_computation(Module& module, CompId from, std::string_view stem = {});
/// Does the same with a given name, which no computation may have yet.
CompId clone_computation_as(Module& module, CompId from, const std::string& name);
/// The largest number of instructions that inlining may create. Nested calls multiply, so that a short program could
/// otherwise need more memory than any machine has.
constexpr size_t kMostInlined = size_t{1} << 22;
/// Inserts a copy of the body of `from` at the builder's position, with `arguments` in place of its parameters; returns
/// the value of the root.
InstrId inline_computation(Builder& builder, CompId from, std::span<const InstrId> arguments);

/// Replaces each control predecessor of `instr` by those that `now` returns for it.
void replace_predecessors(Module& module, Instruction& instr, const std::function<std::vector<InstrId>(InstrId)>& now);
/// Returns `extras` without the control predecessors, for copies of an instruction.
const Extras* without_predecessors(Module& module, const Extras* extras);

/// Drops the parameters that are not read of the computation that `call` alone calls; with `merge` also those that get
/// the same value as an earlier one.
bool drop_operands(Module& module, InstrId call, bool merge);

/// True if removing or repeating `instr` could be noticed, because it or a computation that it calls has a side effect.
/// `computations` says which computations have effects: the result of computations_with_effects.
bool has_effect(const Module& module, const Instruction& instr, const std::vector<bool>& computations);
std::vector<bool> computations_with_effects(const Module& module);

/// Returns which computations asynchronous ops call: these may hold parameters and one op only.
std::vector<bool> asynchronous_computations(const Module& module);

/// Returns the position of the operand that is an array of all start indices of a dynamic-slice or dynamic-update-slice;
/// 0 if the start indices are scalars, as they are after split_starts, and for other ops.
size_t position_of_starts(const Module& module, const Instruction& instr);

/// Returns the literal of a constant, or of a broadcast of a scalar constant; else null. `scalar`: only if all elements
/// are equal; then element 0 of the literal is their value.
const Literal* constant_value(const Module& module, InstrId id);
const Literal* splat_value(const Module& module, InstrId id);

/// Returns a copy of the module whose results are the values of these instructions of the entry, without the header's facts
/// about the old results.
std::unique_ptr<Module> with_results(const Module& module, std::span<const InstrId> values);

/// Returns the numbers of the computation's instructions that others need, with its root.
std::unordered_set<uint32_t> used_in(const Module& module, CompId computation);

/// Calls `once` until it changes nothing, at most so many times, and drops after each change what nothing needs any more.
/// Returns true if anything was changed.
Expected<bool> repeat_until_stable(Module& module, PassContext& context, int most_rounds,
                                   const std::function<Expected<bool>()>& once);

}  // namespace collet::hlo
