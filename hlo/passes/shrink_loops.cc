// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "hlo/passes/loops.h"
#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

// Removes state that a loop need not carry. Elements that never change and start as constants become constants in the
// body. Users outside read elements that never change from the initial value. Elements on which neither the condition
// nor a result nor another needed element depends are dropped. A loop of which nothing is needed is removed, even if it
// would not end, because XLA assumes that loops without effects end.

namespace collet::hlo {
namespace {

// Largest constant, in bytes, that is copied into the body. A device may fold small constants into its code.
constexpr int64_t kLargestSunk = 1024;
// Most rounds of the pass. Constants that one round moves into a body allow the next round to move them one level of
// nesting further in.
constexpr int kMostRounds = 8;

// Replaces reads of the state elements in `values` by these constants. `result`, the root of the body, still passes the
// elements on, so that later passes recognise them as invariant.
bool read_constants(Module& module, CompId c, InstrId result, const std::unordered_map<size_t, InstrId>& values) {
  std::vector<InstrId> order;
  std::unordered_map<uint32_t, size_t> reads;  // get-tuple-element -> state element
  std::unordered_map<size_t, InstrId> here;
  bool changed = false;
  for (InstrId id : module[c].order) {
    if (const auto read = state_read(module, c, id); read && values.contains(*read)) reads[index_of(id)] = *read;
    for (size_t k = 0; id != result && !reads.empty() && k < module[id].operands.size(); ++k) {
      const auto it = reads.find(index_of(module[id].operand(k)));
      if (it == reads.end()) continue;
      InstrId& constant = here.try_emplace(it->second, InstrId::None).first->second;
      if (constant == InstrId::None) {
        const Instruction& value = module[values.at(it->second)];
        constant = module.create(c, Op::CONSTANT, value.shape, {}, value.attrs);
        order.push_back(constant);
      }
      module[id].operands[k] = constant;
      changed = true;
    }
    order.push_back(id);
  }
  if (changed) module[c].order = std::move(order);
  return changed;
}

bool sink_constants(Module& module, const Loop& loop) {
  std::unordered_map<size_t, InstrId> values;
  for (size_t i = 0; i < loop.size; ++i) {
    const InstrId init = module[loop.init].operand(i);
    if (module[init].op != Op::CONSTANT || module[init].shape.byte_size() > kLargestSunk) continue;
    if (is_invariant(module, loop, i)) values[i] = init;
  }
  if (values.empty()) return false;
  const bool condition = read_constants(module, loop.condition, InstrId::None, values);
  return read_constants(module, loop.body, module[loop.body].root, values) || condition;
}

// Removes instructions that only computed dropped elements, because they would read state that no longer exists.
bool drop_dead(Module& module, CompId c, const std::vector<bool>& effects) {
  std::unordered_map<uint32_t, bool> live;
  live[index_of(module[c].root)] = true;
  auto& order = module[c].order;
  for (size_t k = order.size(); k-- > 0;) {
    const Instruction& instr = module[order[k]];
    if (instr.op == Op::PARAMETER || has_effect(module, instr, effects)) live[index_of(order[k])] = true;
    if (!live[index_of(order[k])]) continue;
    for (InstrId o : instr.operands) live[index_of(o)] = true;
    if (instr.extras)
      for (InstrId p : instr.extras->control_predecessors) live[index_of(p)] = true;
  }
  return std::erase_if(order, [&](InstrId id) { return !live[index_of(id)]; }) != 0;
}

/// Finds the elements of a loop's state that are needed, backwards from those that are read outside or by the
/// condition.
class Needed {
 public:
  Needed(const Module& module, const Loop& loop) : module_(module), loop_(loop), needed_(loop.size) {}

  std::vector<bool> find(const UserMap& users, InstrId root, const std::vector<bool>& effects) {
    if (loop_.op == root) return std::vector<bool>(loop_.size, true);
    for (InstrId user : users.users(loop_.op)) {
      if (module_[user].op != Op::GET_TUPLE_ELEMENT) return std::vector<bool>(loop_.size, true);
      need(static_cast<size_t>(module_[user].as<TupleIndexAttrs>().index));
    }
    for (InstrId id : module_[loop_.condition].order)
      if (const auto read = state_read(module_, loop_.condition, id)) need(*read);
    for (InstrId id : module_[loop_.body].order)
      if (has_effect(module_, module_[id], effects)) look(id);
    while (!work_.empty()) {
      const InstrId id = work_.back();
      work_.pop_back();
      if (const auto read = state_read(module_, loop_.body, id)) need(*read);
      for (InstrId o : module_[id].operands) look(o);
      if (module_[id].extras)
        for (InstrId p : module_[id].extras->control_predecessors) look(p);
    }
    return needed_;
  }

 private:
  void need(size_t i) {
    if (needed_[i]) return;
    needed_[i] = true;
    look(module_[module_[loop_.body].root].operand(i));
  }
  void look(InstrId id) {
    if (seen_[index_of(id)]) return;
    seen_[index_of(id)] = true;
    work_.push_back(id);
  }

  const Module& module_;
  const Loop& loop_;
  std::vector<bool> needed_;
  std::unordered_map<uint32_t, bool> seen_;
  std::vector<InstrId> work_;
};

// Removes the shardings of dropped elements: the sharding of the state has one entry for each element.
void narrow_sharding(Module& module, Instruction& instr, const std::vector<bool>& needed) {
  if (!instr.extras || !instr.extras->sharding || instr.extras->sharding->kind != Sharding::Kind::Tuple) return;
  const Sharding& old = *instr.extras->sharding;
  Extras extras = *instr.extras;
  extras.sharding = nullptr;
  if (old.elements.size() == needed.size()) {
    Sharding narrow = old;
    narrow.elements.clear();
    for (size_t i = 0; i < needed.size(); ++i)
      if (needed[i]) narrow.elements.push_back(old.elements[i]);
    extras.sharding = module.keep(std::move(narrow));
  }
  instr.extras = module.arena().make<Extras>(extras);
}

void set_operands(Module& module, InstrId tuple, const std::vector<bool>& needed) {
  std::vector<InstrId> operands;
  std::vector<Shape> shapes;
  for (size_t i = 0; i < needed.size(); ++i)
    if (needed[i]) {
      operands.push_back(module[tuple].operand(i));
      shapes.push_back(module[operands.back()].shape);
    }
  module[tuple].operands = module.arena().list<InstrId>(std::span<const InstrId>(operands));
  module[tuple].shape = Shape::tuple(std::move(shapes));
  narrow_sharding(module, module[tuple], needed);
}

void renumber(Module& module, Instruction& read, const std::vector<int64_t>& number) {
  auto* attrs = module.make<TupleIndexAttrs>();
  attrs->index = number[static_cast<size_t>(read.as<TupleIndexAttrs>().index)];
  read.attrs = attrs;
}

// Returns the new operand of the loop, which is not in the computation yet; None if all elements are needed.
InstrId drop_state(Module& module, CompId caller, const Loop& loop, const UserMap& users,
                   const std::vector<bool>& effects) {
  const std::vector<bool> needed = Needed(module, loop).find(users, module[caller].root, effects);
  if (std::find(needed.begin(), needed.end(), false) == needed.end()) return InstrId::None;
  std::vector<int64_t> number(loop.size, -1);
  int64_t next = 0;
  for (size_t i = 0; i < loop.size; ++i)
    if (needed[i]) number[i] = next++;
  // The tuple may also be the operand of another loop, so a new one is made.
  const std::vector<InstrId> elements(module[loop.init].operands.begin(), module[loop.init].operands.end());
  const InstrId init = module.create(caller, Op::TUPLE, module[loop.init].shape, elements);
  set_operands(module, init, needed);
  module[loop.op].operands[0] = init;
  module[loop.op].shape = module[init].shape;
  module[loop.op].attrs = module.make<WhileAttrs>();
  narrow_sharding(module, module[loop.op], needed);
  set_operands(module, own_root(module, loop.body), needed);
  for (CompId c : {loop.condition, loop.body}) {
    const InstrId parameter = module[c].parameters[0];
    module[parameter].shape = module[init].shape;
    narrow_sharding(module, module[parameter], needed);
    drop_dead(module, c, effects);
    for (InstrId id : module[c].order)
      if (state_read(module, c, id)) renumber(module, module[id], number);
  }
  for (InstrId user : users.users(loop.op)) renumber(module, module[user], number);
  return init;
}

// True if element `i` has the same value after the loop as before it.
bool is_known_before(const Module& module, const Loop& loop, size_t i) {
  const Shape& first = module[module[loop.init].operand(i)].shape;
  return is_invariant(module, loop, i) && first.same_without_layout(module[loop.op].shape.element(i));
}

// Builds a tuple of the loop's results; elements that never change are taken from the initial state.
InstrId result_of_parts(Builder& builder, Module& module, const Loop& loop) {
  std::vector<InstrId> parts;
  for (size_t i = 0; i < loop.size; ++i)
    parts.push_back(is_known_before(module, loop, i) ? module[loop.init].operand(i)
                                                     : builder.get(loop.op, static_cast<int64_t>(i)));
  return builder.tuple(parts);
}

bool has_invariant(const Module& module, const Loop& loop) {
  for (size_t i = 0; i < loop.size; ++i)
    if (is_known_before(module, loop, i)) return true;
  return false;
}

// Users of an invariant element of a loop's result read the loop's operand instead.
bool forward_invariants(Module& module, CompId c, const std::vector<Loop>& loops) {
  std::unordered_map<uint32_t, const Loop*> loop_of;
  for (const Loop& loop : loops)
    if (has_invariant(module, loop)) loop_of[index_of(loop.op)] = &loop;
  if (loop_of.empty()) return false;
  Rewriter rewriter(module, c);
  for (InstrId id : rewriter.instructions()) {
    const Instruction& instr = rewriter.enter(id);
    if (instr.op == Op::GET_TUPLE_ELEMENT) {
      const auto it = loop_of.find(index_of(instr.operand(0)));
      const auto i = static_cast<size_t>(instr.as<TupleIndexAttrs>().index);
      if (it != loop_of.end() && is_known_before(module, *it->second, i)) {
        rewriter.replace(id, module[it->second->init].operand(i));
        continue;
      }
    }
    rewriter.keep(id);
  }
  bool changed = rewriter.finish();
  if (const auto it = loop_of.find(index_of(module[c].root)); it != loop_of.end()) {
    Builder builder(module, c);
    module[c].root = result_of_parts(builder, module, *it->second);
    changed = true;
  }
  return changed;
}

bool shrink_in(Module& module, CompId c, LoopFinder& finder, const std::vector<uint32_t>& callers,
               const std::vector<bool>& effects) {
  std::vector<Loop> loops;
  for (InstrId id : module[c].order)
    if (const auto loop = finder.find(id); loop && callers[index_of(loop->condition)] == 1)
      if (callers[index_of(loop->body)] == 1) loops.push_back(*loop);
  if (loops.empty()) return false;
  bool changed = forward_invariants(module, c, loops);
  std::unordered_map<uint32_t, InstrId> before;  // instructions to insert before a loop
  const UserMap users(module, c);
  for (const Loop& loop : loops) {
    changed |= sink_constants(module, loop);
    drop_dead(module, loop.condition, effects);  // get-tuple-elements without users do not count as reads
    const InstrId init = drop_state(module, c, loop, users, effects);
    if (init != InstrId::None) before[index_of(loop.op)] = init;
  }
  if (before.empty()) return changed;
  std::vector<InstrId> order;
  for (InstrId id : module[c].order) {
    if (auto it = before.find(index_of(id)); it != before.end()) order.push_back(it->second);
    order.push_back(id);
  }
  module[c].order = std::move(order);
  return true;
}

}  // namespace

Expected<bool> shrink_loops(Module& module, PassContext& context) {
  const auto shrink = [&]() -> Expected<bool> {
    bool changed = false;
    const std::vector<uint32_t> callers = count_callers(module);
    const std::vector<bool> effects = computations_with_effects(module);
    LoopFinder finder(module);
    for (CompId c : flow_computations(module)) changed |= shrink_in(module, c, finder, callers, effects);
    return changed;
  };
  COLLET_ASSIGN(const bool changed, repeat_until_stable(module, context, kMostRounds, shrink));
  // The trip count attributes refer to state elements by number, and these numbers have changed.
  if (changed) COLLET_TRY(count_trips(module, context).status());
  return changed;
}

}  // namespace collet::hlo
