// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "hlo/passes/loops.h"
#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

// Moves computations of a loop that depend only on values that never change to before the loop; their results are carried
// along. Only ops without effects are moved, so it does not matter if the loop runs no iteration.

namespace collet::hlo {
namespace {

// True for ops that are cheap to recompute and often larger than their operands: they are moved only together with an
// instruction that uses them.
bool is_cheap(Op op) {
  switch (op) {
    case Op::CONSTANT:
    case Op::IOTA:
    case Op::BROADCAST:
    case Op::RESHAPE:
    case Op::GET_TUPLE_ELEMENT:
    case Op::TUPLE:
    case Op::PARAMETER:
      return true;
    default:
      return false;
  }
}

// Ops that are not moved. Before the loop they would run even if it has no iteration, where they may fail or cost much.
// Barriers hold values in place on purpose.
bool stays(Op op) {
  switch (op) {
    case Op::OPT_BARRIER:
    case Op::CUSTOM_CALL:
    case Op::CALL:
    case Op::WHILE:
    case Op::CONDITIONAL:
      return true;
    default:
      return false;
  }
}

/// One loop and what can leave its body.
class Hoister {
 public:
  Hoister(Module& module, CompId caller, const Loop& loop, const std::vector<bool>& effects)
      : module_(module), caller_(caller), loop_(loop), effects_(effects) {}

  /// Returns the instructions to insert before the loop, its new operand last; empty if nothing is moved.
  std::vector<InstrId> run() {
    find_steady();
    const std::vector<InstrId> chosen = choose();
    if (chosen.empty()) return {};
    std::vector<InstrId> values;
    for (InstrId id : chosen) values.push_back(outside(id));
    widen(chosen, values);
    return std::move(before_);
  }

 private:
  const Computation& body() const { return module_[loop_.body]; }

  // Finds all values in the body that are the same in each iteration.
  void find_steady() {
    for (InstrId id : body().order) {
      const Instruction& instr = module_[id];
      if (const auto read = state_read(module_, loop_.body, id)) {
        if (is_invariant(module_, loop_, *read)) steady_[index_of(id)] = false;
        continue;
      }
      if (instr.op == Op::PARAMETER || id == body().root || stays(instr.op) || !instr.shape.is_array() ||
          has_effect(module_, instr, effects_) || (instr.extras && !instr.extras->control_predecessors.empty()))
        continue;
      // The flag says whether the value depends on a value that is not a constant.
      bool all = true, depends = false;
      for (InstrId o : instr.operands) {
        auto it = steady_.find(index_of(o));
        all &= it != steady_.end();
        depends |= it != steady_.end() && (it->second || module_[o].op == Op::GET_TUPLE_ELEMENT);
      }
      if (all) steady_[index_of(id)] = depends;
    }
  }

  bool worthwhile(InstrId id) const {
    const Instruction& instr = module_[id];
    auto it = steady_.find(index_of(id));
    if (it == steady_.end() || !it->second || is_cheap(instr.op)) return false;
    int64_t read = 0;
    for (InstrId o : instr.operands) read += module_[o].shape.byte_size();
    return instr.shape.byte_size() <= read;
  }

  // Returns the invariant values that are used by an instruction that is not invariant.
  std::vector<InstrId> choose() const {
    std::unordered_set<uint32_t> wanted;
    for (InstrId id : body().order) {
      if (steady_.contains(index_of(id))) continue;
      for (InstrId o : module_[id].operands) wanted.insert(index_of(o));
    }
    std::vector<InstrId> out;
    // If a value is too large to be carried, its operands may be small enough.
    for (size_t k = body().order.size(); k-- > 0;) {
      const InstrId id = body().order[k];
      if (!wanted.contains(index_of(id)) || !steady_.contains(index_of(id))) continue;
      if (worthwhile(id))
        out.push_back(id);
      else if (module_[id].op != Op::GET_TUPLE_ELEMENT)
        for (InstrId o : module_[id].operands) wanted.insert(index_of(o));
    }
    std::reverse(out.begin(), out.end());
    return out;
  }

  // Copies `id` and everything that it depends on to before the loop.
  InstrId outside(InstrId start) {
    std::vector<InstrId> stack{start};
    while (!stack.empty()) {
      const InstrId id = stack.back();
      if (copies_.contains(index_of(id))) {
        stack.pop_back();
        continue;
      }
      if (const auto read = state_read(module_, loop_.body, id)) {
        copies_[index_of(id)] = module_[loop_.init].operand(*read);
        stack.pop_back();
        continue;
      }
      std::vector<InstrId> operands;
      bool ready = true;
      for (InstrId o : module_[id].operands) {
        auto it = copies_.find(index_of(o));
        if (it == copies_.end()) {
          stack.push_back(o);
          ready = false;
        } else {
          operands.push_back(it->second);
        }
      }
      if (!ready) continue;
      stack.pop_back();
      const Instruction instr = module_[id];
      const InstrId copy = module_.create(caller_, instr.op, instr.shape, operands, instr.attrs, instr.called);
      module_[copy].extras = instr.extras;
      copies_[index_of(id)] = copy;
      before_.push_back(copy);
    }
    return copies_.at(index_of(start));
  }

  void drop_sharding(Instruction& instr) {
    if (!instr.extras || !instr.extras->sharding) return;
    Extras extras = *instr.extras;
    extras.sharding = nullptr;
    instr.extras = module_.arena().make<Extras>(extras);
  }

  // Adds the values to the state of the loop.
  void widen(const std::vector<InstrId>& chosen, const std::vector<InstrId>& values) {
    std::vector<InstrId> elements(module_[loop_.init].operands.begin(), module_[loop_.init].operands.end());
    elements.insert(elements.end(), values.begin(), values.end());
    std::vector<Shape> shapes;
    for (InstrId id : elements) shapes.push_back(module_[id].shape);
    const Shape state = Shape::tuple(shapes);
    const InstrId init = module_.create(caller_, Op::TUPLE, state, elements);
    before_.push_back(init);
    module_[loop_.op].operands[0] = init;
    module_[loop_.op].shape = state;
    drop_sharding(module_[loop_.op]);
    for (CompId c : {loop_.condition, loop_.body}) {
      Instruction& parameter = module_[module_[c].parameters[0]];
      parameter.shape = state;
      drop_sharding(parameter);
    }
    own_root(module_, loop_.body);
    read_inside(chosen);
    module_[body().root].shape = state;
    drop_sharding(module_[body().root]);
  }

  void read_inside(const std::vector<InstrId>& chosen) {
    const InstrId parameter = body().parameters[0], root = body().root;
    std::unordered_map<uint32_t, InstrId> reads;
    std::vector<InstrId> order{parameter}, results(module_[root].operands.begin(), module_[root].operands.end());
    for (size_t i = 0; i < chosen.size(); ++i) {
      auto* attrs = module_.make<TupleIndexAttrs>();
      attrs->index = static_cast<int64_t>(loop_.size + i);
      const InstrId operand[] = {parameter};
      const InstrId read = module_.create(loop_.body, Op::GET_TUPLE_ELEMENT, module_[chosen[i]].shape, operand, attrs);
      reads[index_of(chosen[i])] = read;
      order.push_back(read);
      results.push_back(read);
    }
    for (InstrId id : body().order) {
      if (id == parameter || reads.contains(index_of(id))) continue;
      for (InstrId& o : module_[id].operands)
        if (auto it = reads.find(index_of(o)); it != reads.end()) o = it->second;
      order.push_back(id);
    }
    for (InstrId& result : results)
      if (auto it = reads.find(index_of(result)); it != reads.end()) result = it->second;
    module_[root].operands = module_.arena().list<InstrId>(std::span<const InstrId>(results));
    module_[loop_.body].order = std::move(order);
  }

  Module& module_;
  const CompId caller_;
  const Loop loop_;
  const std::vector<bool>& effects_;
  std::unordered_map<uint32_t, bool> steady_;
  std::unordered_map<uint32_t, InstrId> copies_;
  std::vector<InstrId> before_;
};

// True if elements may be added to the state of the loop, because users read it by get-tuple-element only.
bool may_widen(const Module& module, CompId c, InstrId loop, const UserMap& users) {
  if (module[c].root == loop) return false;
  const auto list = users.users(loop);
  return std::all_of(list.begin(), list.end(), [&](InstrId user) { return module[user].op == Op::GET_TUPLE_ELEMENT; });
}

bool has_predecessors(const Module& module, CompId c) {
  const auto& order = module[c].order;
  return std::any_of(order.begin(), order.end(),
                     [&](InstrId id) { return module[id].extras && !module[id].extras->control_predecessors.empty(); });
}

}  // namespace

Expected<bool> hoist_invariants(Module& module, PassContext& context) {
  bool changed = false;
  const std::vector<uint32_t> callers = count_callers(module);
  const std::vector<bool> effects = computations_with_effects(module);
  LoopFinder finder(module);
  for (CompId c : flow_computations(module)) {
    std::vector<Loop> loops;
    for (InstrId id : module[c].order)
      if (const auto loop = finder.find(id)) loops.push_back(*loop);
    if (loops.empty()) continue;
    const UserMap users(module, c);
    std::unordered_map<uint32_t, std::vector<InstrId>> before;
    for (const Loop& loop : loops) {
      if (callers[index_of(loop.condition)] != 1 || callers[index_of(loop.body)] != 1) continue;
      if (!may_widen(module, c, loop.op, users) || has_predecessors(module, loop.body)) continue;
      std::vector<InstrId> moved = Hoister(module, c, loop, effects).run();
      if (!moved.empty()) before[index_of(loop.op)] = std::move(moved);
    }
    if (before.empty()) continue;
    std::vector<InstrId> order;
    for (InstrId id : module[c].order) {
      if (auto it = before.find(index_of(id)); it != before.end())
        order.insert(order.end(), it->second.begin(), it->second.end());
      order.push_back(id);
    }
    module[c].order = std::move(order);
    changed = true;
  }
  if (changed) COLLET_TRY(eliminate_dead(module, context).status());
  return changed;
}

}  // namespace collet::hlo
