// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

// Rewrites f(move(x), move(y)) into move(f(x, y)) for elementwise f, if all operands were moved alike by a reshape, a
// transpose or a broadcast (splat constants may be among the operands). Movements then meet, so that simplify can join
// them, and fewer elements are computed. A movement with further users stays, because it would otherwise be done twice.

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

bool is_movement(const Module& module, const Instruction& instr) {
  if (instr.op != Op::RESHAPE && instr.op != Op::TRANSPOSE && instr.op != Op::BROADCAST) return false;
  const Shape& from = module[instr.operand(0)].shape;
  // A scalar operand is a splat and needs no move; a broadcast is moved if it increases the number of elements.
  return from.rank() > 0 && !from.has_dynamic() && !instr.shape.has_dynamic() && instr.shape.element_count() > 0 &&
         (instr.op != Op::BROADCAST || from.element_count() < instr.shape.element_count());
}

bool is_splat(const Module& module, InstrId id) {
  const Instruction& instr = module[id];
  return (instr.op == Op::BROADCAST && module[instr.operand(0)].shape.rank() == 0) ||
         (instr.op == Op::CONSTANT && instr.shape.rank() == 0);
}

bool is_sinkable(const Instruction& instr) {
  return is_elementwise(instr.op) && instr.op != Op::MAP && instr.op != Op::STOCHASTIC_CONVERT &&
         instr.op != Op::COMPLEX && instr.shape.is_array() && !instr.shape.has_dynamic() && !instr.operands.empty();
}

class Sinker {
 public:
  Sinker(Module& module, CompId c) : module_(module), computation_(c), rewriter_(module, c) {}

  Expected<bool> run() {
    count_users();
    for (InstrId id : rewriter_.instructions()) {
      const Instruction& instr = rewriter_.enter(id);
      const bool ordered = instr.extras && !instr.extras->control_predecessors.empty();
      const InstrId with = is_sinkable(instr) && !ordered ? sink(instr) : InstrId::None;
      if (with == InstrId::None) {
        rewriter_.keep(id);
        continue;
      }
      users_[index_of(with)] = users_[index_of(id)];
      rewriter_.replace(id, with);
    }
    const bool changed = rewriter_.finish();
    COLLET_TRY(rewriter_.builder().status());
    return changed;
  }

 private:
  // Counts the uses of each instruction. Being the root counts as one.
  void count_users() {
    for (InstrId id : rewriter_.instructions())
      for (InstrId o : module_[id].operands) ++users_[index_of(o)];
    ++users_[index_of(module_[computation_].root)];
  }

  InstrId sink(const Instruction& instr) {
    const Instruction* movement = nullptr;
    for (InstrId o : instr.operands) {
      if (is_splat(module_, o)) continue;
      const Instruction& x = module_[o];
      // A user counts once, even if it has the operand twice.
      const auto uses = std::count(instr.operands.begin(), instr.operands.end(), o);
      if (!is_movement(module_, x) || users_[index_of(o)] > uses) return InstrId::None;
      if (!x.shape.same_dims(instr.shape)) return InstrId::None;
      if (movement && !same_movement(module_, *movement, x)) return InstrId::None;
      movement = &x;
    }
    if (!movement) return InstrId::None;
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
  std::unordered_map<uint32_t, int64_t> users_;
};

}  // namespace

Expected<bool> sink_movement(Module& module, PassContext&) {
  bool changed = false;
  for (CompId c : flow_computations(module)) {
    COLLET_ASSIGN(const bool did, Sinker(module, c).run());
    changed |= did;
  }
  return changed;
}

}  // namespace collet::hlo
