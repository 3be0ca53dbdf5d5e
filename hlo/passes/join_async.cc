// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>

#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

namespace collet::hlo {
namespace {

// Returns the synchronous op that a -start op begins; INVALID for other ops.
Op plain_op(Op start) {
  switch (start) {
    case Op::COPY_START:
      return Op::COPY;
    case Op::ALL_GATHER_START:
      return Op::ALL_GATHER;
    case Op::ALL_REDUCE_START:
      return Op::ALL_REDUCE;
    case Op::COLLECTIVE_PERMUTE_START:
      return Op::COLLECTIVE_PERMUTE;
    default:
      return Op::INVALID;
  }
}

bool is_done(Op op) {
  return op == Op::ASYNC_DONE || op == Op::ASYNC_UPDATE || op == Op::COPY_DONE || op == Op::ALL_GATHER_DONE ||
         op == Op::ALL_REDUCE_DONE || op == Op::COLLECTIVE_PERMUTE_DONE;
}

// True if the value of `start` is used only by its -done or -update; other starts cannot be joined.
bool only_awaited(const Module& module, const UserMap& users, InstrId start) {
  for (InstrId user : users.users(start)) {
    if (!is_done(module[user].op)) return false;
    if (module[user].op == Op::ASYNC_UPDATE && !only_awaited(module, users, user)) return false;
  }
  return true;
}

// True if the asynchronous computation holds transfers (send, recv), whose own start and done must stay where they are.
bool holds_transfers(const Module& module, const Instruction& start) {
  for (CompId c : start.called)
    for (InstrId id : module[c].order) {
      const Op op = module[id].op;
      if (op == Op::SEND || op == Op::RECV || op == Op::SEND_DONE || op == Op::RECV_DONE) return true;
    }
  return false;
}

// Writes the synchronous op of a start and done pair, at the place of the start.
InstrId join(Module& module, Builder& b, const Instruction& start, const Instruction* done) {
  if (start.op == Op::ASYNC_START) return inline_computation(b, start.called[0], start.operands);
  const Shape shape = done ? done->shape : start.op == Op::ALL_REDUCE_START ? start.shape : start.shape.element(1);
  std::vector<InstrId> operands(start.operands.begin(), start.operands.end());
  if (start.op == Op::COPY_START) return b.op(Op::COPY, shape, operands);
  const InstrId id = b.op(plain_op(start.op), shape, operands, start.attrs, start.called);
  if (id != InstrId::None) module[id].extras = start.extras;
  return id;
}

}  // namespace

Expected<bool> join_async(Module& module, PassContext&) {
  bool changed = false;
  for (CompId computation : post_order(module)) {
    bool any = false;
    for (InstrId id : module[computation].order)
      any |= module[id].op == Op::ASYNC_START || plain_op(module[id].op) != Op::INVALID;
    if (!any) continue;
    const UserMap users(module, computation);
    const InstrId root = module[computation].root;
    Rewriter rewriter(module, computation);
    for (InstrId id : rewriter.instructions()) {
      Instruction& instr = rewriter.enter(id);
      const bool starts = instr.op == Op::ASYNC_START || plain_op(instr.op) != Op::INVALID;
      if (starts && id != root && only_awaited(module, users, id) && !holds_transfers(module, instr)) {
        const auto waiting = users.users(id);
        const Instruction* done = waiting.empty() ? nullptr : &module[waiting[0]];
        rewriter.replace(id, join(module, rewriter.builder(), instr, done));
      } else if (is_done(instr.op) && instr.operand(0) != InstrId::None &&
                 !(module[instr.operand(0)].op == Op::ASYNC_START || module[instr.operand(0)].op == Op::ASYNC_UPDATE ||
                   plain_op(module[instr.operand(0)].op) != Op::INVALID)) {
        rewriter.replace(id, instr.operand(0));
      } else {
        rewriter.keep(id);
      }
    }
    changed |= rewriter.finish();
    COLLET_TRY(rewriter.builder().status());
  }
  if (changed) {
    order_computations(module);
    // Computations that asynchronous wrappers called are now called from the main thread.
    bool wrappers = false;
    for (CompId computation : module.computations())
      for (InstrId id : module[computation].order) wrappers |= module[id].op == Op::ASYNC_START;
    if (!wrappers)
      for (CompId computation : module.computations()) module[computation].execution_thread = {};
  }
  return changed;
}

}  // namespace collet::hlo
