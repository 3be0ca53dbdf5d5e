// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <ranges>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

// Rewrites f(move(x), move(y)) into move(f(x, y)) for elementwise f, if all operands were moved alike by a reshape, a
// transpose or a broadcast (splat constants may be among the operands). Movements then meet, so that simplify can join
// them, and fewer elements are computed. A movement with further users stays, because it would otherwise be done twice,
// but a reshape moves with all its users where all of them can.

namespace collet::hlo {
namespace {

bool same_movement(const Module& module, const Instruction& a, const Instruction& b) {
  if (a.op != b.op || !module[a.operand(0)].shape.same_dims(module[b.operand(0)].shape)) return false;
  switch (a.op) {
    case Op::RESHAPE:
      return true;
    case Op::TRANSPOSE:
    case Op::BROADCAST:
      return equal_records(op_info(a.op).record, a.attrs, b.attrs);
    default:
      return false;
  }
}

std::vector<int64_t> dims_of(const Instruction& instr) {
  return {instr.shape.dims().begin(), instr.shape.dims().end()};
}

bool is_movement(const Module& module, const Instruction& instr) {
  if (instr.op != Op::RESHAPE && instr.op != Op::TRANSPOSE && instr.op != Op::BROADCAST) return false;
  const Shape& from = module[instr.operand(0)].shape;
  // A scalar operand is a splat and needs no move, and what is computed of a scalar stays one; a broadcast is moved if it increases the
  // number of elements.
  return from.rank() > 0 && instr.shape.rank() > 0 && !from.has_dynamic() && !instr.shape.has_dynamic() &&
         instr.shape.element_count() > 0 &&
         (instr.op != Op::BROADCAST || from.element_count() < instr.shape.element_count());
}

bool is_splat(const Module& module, InstrId id) {
  const Instruction& instr = module[id];
  return (instr.op == Op::BROADCAST && module[instr.operand(0)].shape.rank() == 0) ||
         (instr.op == Op::CONSTANT && instr.shape.rank() == 0);
}

bool may_sink(const Instruction& instr) {
  if (instr.extras && !instr.extras->control_predecessors.empty()) return false;
  return is_elementwise(instr.op) && instr.op != Op::MAP && instr.op != Op::STOCHASTIC_CONVERT &&
         instr.op != Op::COMPLEX && instr.shape.is_array() && !instr.shape.has_dynamic() && !instr.operands.empty();
}

class Sinker {
 public:
  Sinker(Module& module, CompId c) : module_(module), computation_(c), rewriter_(module, c) {}

  Expected<bool> run() {
    count_uses();
    choose_reshaped();
    for (InstrId id : rewriter_.instructions()) {
      const bool reshaped = reshaped_.contains(index_of(id));
      const Instruction& instr = rewriter_.enter(id);
      const InstrId with = may_sink(instr) ? sink(instr, reshaped) : InstrId::None;
      if (with == InstrId::None) {
        rewriter_.keep(id);
        continue;
      }
      uses_[index_of(with)] = uses_[index_of(id)];
      rewriter_.replace(id, with);
    }
    const bool changed = rewriter_.finish();
    COLLET_TRY(rewriter_.builder().status());
    return changed;
  }

 private:
  // Counts the uses of each instruction. Being the root counts as one.
  void count_uses() {
    for (InstrId id : rewriter_.instructions())
      for (InstrId o : module_[id].operands) ++uses_[index_of(o)];
    ++uses_[index_of(module_[computation_].root)];
  }

  // ---- reshapes with several users ----

  // Finds the elementwise instructions that can be computed before the reshapes of their operands, so that no reshape is needed
  // both before and after: a reshape with several users moves after all of them or stays.
  void choose_reshaped() {
    for (InstrId id : rewriter_.instructions()) {
      const Instruction& instr = module_[id];
      if (instr.op == Op::RESHAPE && is_movement(module_, instr))
        from_[index_of(id)] = dims_of(module_[instr.operand(0)]);
      else if (may_sink(instr))
        note_reshaped(id, instr);
    }
    if (reshaped_.empty()) return;
    for (InstrId id : rewriter_.instructions())
      for (InstrId o : module_[id].operands) {
        if (!from_.contains(index_of(o))) continue;
        std::vector<InstrId>& users = users_[index_of(o)];
        if (users.empty() || users.back() != id) users.push_back(id);
      }
    std::vector<InstrId> stay;
    for (InstrId id : rewriter_.instructions()) give_up_users(id, stay);
    while (!stay.empty()) {
      const InstrId id = stay.back();
      stay.pop_back();
      for (InstrId user : users_[index_of(id)]) give_up(user, stay);
      for (InstrId o : module_[id].operands) give_up_users(o, stay);
    }
  }

  void note_reshaped(InstrId id, const Instruction& instr) {
    std::optional<std::vector<int64_t>> from;
    for (InstrId o : instr.operands) {
      if (is_splat(module_, o)) continue;
      const auto it = from_.find(index_of(o));
      if (it == from_.end() || !module_[o].shape.same_dims(instr.shape)) return;
      if (from && *from != it->second) return;
      from = it->second;
    }
    if (!from) return;
    from_[index_of(id)] = *from;
    reshaped_.insert(index_of(id));
  }

  void give_up(InstrId id, std::vector<InstrId>& stay) {
    if (reshaped_.erase(index_of(id)) == 0) return;
    from_.erase(index_of(id));
    stay.push_back(id);
  }

  // If `id` will be a reshape, has several users, and one of them stays, all stay.
  void give_up_users(InstrId id, std::vector<InstrId>& stay) {
    if (!from_.contains(index_of(id))) return;
    const std::vector<InstrId>& users = users_[index_of(id)];
    const bool is_root = module_[computation_].root == id;
    if (users.size() + (is_root ? 1 : 0) < 2) return;
    // A reshape of a reshape is one.
    const auto moves = [&](InstrId user) {
      return reshaped_.contains(index_of(user)) || module_[user].op == Op::RESHAPE;
    };
    if (!is_root && std::ranges::all_of(users, moves)) return;
    for (InstrId user : users) give_up(user, stay);
  }

  // ---- rewriting ----

  // Returns the movement that all operands but splats have in common; null if there is none.
  const Instruction* movement_of(const Instruction& instr) const {
    const Instruction* movement = nullptr;
    for (InstrId o : instr.operands) {
      if (is_splat(module_, o)) continue;
      const Instruction& x = module_[o];
      if (!is_movement(module_, x) || !x.shape.same_dims(instr.shape)) return nullptr;
      if (movement && !same_movement(module_, *movement, x)) return nullptr;
      movement = &x;
    }
    return movement;
  }

  InstrId sink(const Instruction& instr, bool reshaped) {
    const Instruction* movement = movement_of(instr);
    if (!movement) return InstrId::None;
    for (InstrId o : instr.operands) {
      if (is_splat(module_, o)) continue;
      // A user counts once, even if it has the operand twice.
      const bool alone = uses_[index_of(o)] <= std::count(instr.operands.begin(), instr.operands.end(), o);
      if (!alone && !reshaped) return InstrId::None;
    }
    Builder& b = rewriter_.builder();
    const Shape small = module_[movement->operand(0)].shape;
    const Instruction moved = *movement;
    std::vector<InstrId> operands;
    for (InstrId o : instr.operands) {
      if (!is_splat(module_, o)) {
        operands.push_back(module_[o].operand(0));
        continue;
      }
      const InstrId scalar = module_[o].op == Op::BROADCAST ? module_[o].operand(0) : o;
      // The limits of clamp and the predicate of select may be scalars beside arrays.
      const bool aside = module_[o].shape.rank() == 0 && instr.shape.rank() > 0;
      operands.push_back(aside ? o : b.broadcast(scalar, small.dims(), {}));
    }
    const InstrId inner =
        b.op(instr.op, Shape::array(instr.shape.type(), small.dims()), operands, instr.attrs, instr.called);
    return b.op(moved.op, Shape::array(instr.shape.type(), instr.shape.dims()), {inner}, moved.attrs);
  }

  Module& module_;
  const CompId computation_;
  Rewriter rewriter_;
  std::unordered_map<uint32_t, int64_t> uses_;
  std::unordered_map<uint32_t, std::vector<InstrId>> users_;  // of those in from_
  // The dimensions before the reshape, of reshapes and of instructions in reshaped_.
  std::unordered_map<uint32_t, std::vector<int64_t>> from_;
  std::unordered_set<uint32_t> reshaped_;
};

}  // namespace

Expected<bool> sink_movement(Module& module, PassContext&) {
  bool changed = false;
  for (CompId c : flow_computations(module)) {
    if (std::ranges::none_of(module[c].order, [&](InstrId id) { return is_movement(module, module[id]); })) continue;
    COLLET_ASSIGN(const bool did, Sinker(module, c).run());
    changed |= did;
  }
  return changed;
}

}  // namespace collet::hlo
