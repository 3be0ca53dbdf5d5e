// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hlo/passes/builder.h"

/// \file
/// How passes walk and change a module. A computation is rewritten forward: a Rewriter takes its instructions out, hands
/// them over one after another with their operands already replaced, and the pass keeps each, or replaces it by what it
/// builds there. What is replaced needs no removal; what became dead is left to eliminate_dead.
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

  /// The instructions as they stood.
  const std::vector<InstrId>& instructions() const { return old_; }
  /// `id` with its operands and control predecessors replaced. It stands nowhere yet: keep or replace it.
  Instruction& enter(InstrId id);
  /// `id` stays, here.
  void keep(InstrId id) { module_[computation_].order.push_back(id); }
  /// `with`, which stands already, takes the place of `id`.
  void replace(InstrId id, InstrId with);
  /// Returns the current replacement of `id`.
  InstrId now(InstrId id) const;
  /// Builds at the current place.
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

/// Puts what `make` builds in the place of the instructions of flow_computations() that `wanted` names; `wanted` is asked
/// about a whole computation before anything in it moves. InstrId::None from `make` leaves the instruction. True if
/// anything was replaced; an error of the builder begins with the instruction's name.
Expected<bool> rewrite_wanted(Module& module, const std::function<bool(InstrId)>& wanted,
                              const std::function<InstrId(Builder&, const Instruction&)>& make);

/// All computations that the entry reaches, callees before callers.
std::vector<CompId> post_order(const Module& module);
/// Control flow, or a plain call: its bodies run as parts of the program. A composite is an op like others.
bool is_flow(const Instruction& instr);
/// The entry and the bodies of control flow and plain calls: what runs as a program; not combiners, comparators, fusions or
/// what a composite stands for. Callees before callers.
std::vector<CompId> flow_computations(const Module& module);
/// Brings module.computations() into the order of post_order, without what the entry does not reach.
void order_computations(Module& module);
/// `stem`, or `stem.N` where a computation has that name.
std::string fresh_computation_name(const Module& module, std::string_view stem);
/// A copy of a computation in the same module; computations that it calls are shared.
CompId clone_computation(Module& module, CompId from, std::string_view stem = {});
/// The same, under a name that no computation has yet.
CompId clone_computation_as(Module& module, CompId from, const std::string& name);
/// Calls of calls multiply: a text of a hundred lines can ask for more than any machine has. So many instructions may be
/// made by writing out what is called.
constexpr size_t kMostInlined = size_t{1} << 22;
/// Puts a copy of the body of `from` where the builder stands, its parameters replaced by `arguments`; what the root
/// became.
InstrId inline_computation(Builder& builder, CompId from, std::span<const InstrId> arguments);

/// `extras` but for the control predecessors: what a copy of an instruction has.
const Extras* without_predecessors(Module& module, const Extras* extras);

/// Drops the parameters of `call`'s computation, which nothing else calls, that are not read; with `merge` also those that
/// are given the same value as an earlier one.
bool drop_operands(Module& module, InstrId call, bool merge);

/// True when dropping or repeating `instr` could be noticed: a side effect, its own or in what it calls.
/// `has_effect[index_of(computation)]` says so of computations: see computations_with_effects.
bool has_effect(const Module& module, const Instruction& instr, const std::vector<bool>& computations);
std::vector<bool> computations_with_effects(const Module& module);

/// Which computations an asynchronous op calls: they may hold nothing but parameters and the one op.
std::vector<bool> asynchronous_computations(const Module& module);

/// A constant, or a broadcast of a scalar constant: the constant's literal. Else null. `scalar`: only if all elements
/// are equal; element 0 of the literal is their value.
const Literal* constant_value(const Module& module, InstrId id);
const Literal* splat_value(const Module& module, InstrId id);

}  // namespace collet::hlo
