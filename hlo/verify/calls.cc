// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/verify/context.h"

namespace collet::hlo::verify {
namespace {

std::string_view thread_of(const Computation& computation) {
  return computation.execution_thread.empty() ? std::string_view("main") : computation.execution_thread;
}

bool is_async(Op op) {
  return op == Op::ASYNC_START || op == Op::ASYNC_UPDATE || op == Op::ASYNC_DONE;
}

bool has_frontend_attribute(const Instruction& instr, std::string_view name) {
  if (!instr.extras) return false;
  return std::any_of(instr.extras->frontend_attributes.begin(), instr.extras->frontend_attributes.end(),
                     [&](const FrontendAttribute& a) { return a.name == name; });
}

// Returns the computations that asynchronous ops run, and those that these call: their threads follow from the op.
std::vector<bool> find_async_computations(const Module& m) {
  std::vector<bool> inside(m.computation_limit());
  // Callers come after callees, so iterates from the last computation to the first.
  for (size_t i = m.computations().size(); i-- > 0;) {
    const CompId c = m.computations()[i];
    for (InstrId id : m[c].order)
      if (inside[index_of(c)] || is_async(m[id].op))
        for (CompId called : m[id].called) inside[index_of(called)] = true;
  }
  return inside;
}

// A called computation runs on its caller's thread; only asynchronous ops change the thread.
void check_threads(Context& context, const Instruction& instr) {
  const Module& m = context.module;
  for (CompId called : instr.called)
    if (thread_of(m[called]) != thread_of(m[instr.parent]))
      context.complain(instr, concat("runs on thread ", thread_of(m[instr.parent]), ", but calls ", m[called].name,
                                     ", which runs on ", thread_of(m[called])));
}

// Checks a fusion: every instruction but the root must have users inside, and the root none.
void check_fusion(Context& context, const Instruction& fusion) {
  const Module& m = context.module;
  const Computation& fused = m[fusion.called[0]];
  const UserMap users(m, fusion.called[0]);
  for (InstrId id : fused.order) {
    const bool used = !users.users(id).empty();
    if (id == fused.root) {
      if (used) context.complain(m[id], concat("the root of fused computation ", fused.name, " has users"));
      continue;
    }
    const bool acts =
        has_side_effect(m[id].op) || (m[id].op == Op::CUSTOM_CALL && m[id].as<CustomCallAttrs>().has_side_effect);
    if (!used && !acts)
      context.complain(m[id], concat("is not the root of fused computation ", fused.name, " and has no users"));
    if (context.full()) return;
  }
}

// Sends and receives may share an asynchronous computation; so may a marked group of collectives.
bool may_hold_several(const Module& m, const Instruction& start) {
  if (has_frontend_attribute(start, "_collectives_group")) return true;
  const Computation& c = m[start.called[0]];
  return std::all_of(c.order.begin(), c.order.end(), [&](InstrId id) {
    const Op op = m[id].op;
    return op == Op::PARAMETER || op == Op::TUPLE || op == Op::SEND || op == Op::RECV || op == Op::SEND_DONE ||
           op == Op::RECV_DONE || op == Op::GET_TUPLE_ELEMENT;
  });
}

void check_async_computation(Context& context, const Instruction& start) {
  const Module& m = context.module;
  if (start.called.empty() || may_hold_several(m, start)) return;
  const Computation& c = m[start.called[0]];
  for (InstrId id : c.order)
    if (id != c.root && m[id].op != Op::PARAMETER) {
      context.complain(
          m[id], concat("async-start C1: asynchronous computation ", c.name, " may hold only parameters and the root"));
      return;
    }
}

}  // namespace

bool same_computation(const Module& m, CompId a, CompId b) {
  if (a == b) return true;
  const auto& left = m[a].order;
  const auto& right = m[b].order;
  if (left.size() != right.size()) return false;
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (size_t i = 0; i < left.size(); ++i) pairs.emplace_back(index_of(left[i]), index_of(right[i]));
  std::sort(pairs.begin(), pairs.end());
  const auto twin = [&](InstrId id) {
    const auto it = std::lower_bound(pairs.begin(), pairs.end(), std::pair<uint32_t, uint32_t>(index_of(id), 0));
    return it == pairs.end() || it->first != index_of(id) ? InstrId::None : static_cast<InstrId>(it->second);
  };
  for (size_t i = 0; i < left.size(); ++i) {
    const Instruction& x = m[left[i]];
    const Instruction& y = m[right[i]];
    if (x.op != y.op || !x.shape.same_without_layout(y.shape) || x.operands.size() != y.operands.size() ||
        x.called.size() != y.called.size())
      return false;
    const Record record = op_info(x.op).record;
    if (x.op == Op::CONSTANT ? !(m.literal(x) == m.literal(y))
                             : record != Record::None && !equal_records(record, x.attrs, y.attrs))
      return false;
    for (size_t k = 0; k < x.operands.size(); ++k)
      if (twin(x.operands[k]) != y.operands[k]) return false;
    for (size_t k = 0; k < x.called.size(); ++k)
      if (!same_computation(m, x.called[k], y.called[k])) return false;
  }
  return twin(m[a].root) == m[b].root;
}

void verify_calls(Context& context) {
  const Module& m = context.module;
  // By computation: the only instruction that may call it, for fusions; for asynchronous ops, the start of their chain.
  std::vector<InstrId> owner(m.computation_limit(), InstrId::None);
  std::vector<bool> shared(m.computation_limit());
  const std::vector<bool> async = find_async_computations(m);
  for (CompId c : m.computations())
    for (InstrId id : m[c].order) {
      const Instruction& instr = m[id];
      if (instr.called.empty()) continue;
      if (context.full()) return;
      if (!is_async(instr.op) && !async[index_of(c)]) check_threads(context, instr);
      if (instr.op == Op::FUSION) check_fusion(context, instr);
      if (instr.op == Op::ASYNC_START) check_async_computation(context, instr);
      for (CompId called : instr.called) {
        InstrId& first = owner[index_of(called)];
        const bool continues = instr.op == Op::ASYNC_UPDATE || instr.op == Op::ASYNC_DONE;
        if (first == InstrId::None) {
          first = id;
          continue;
        }
        if (continues && is_async(m[first].op)) continue;
        const bool alone =
            instr.op == Op::FUSION || m[first].op == Op::FUSION || is_async(instr.op) || is_async(m[first].op);
        if (alone && !shared[index_of(called)]) {
          shared[index_of(called)] = true;
          context.complain(instr, concat("calls ", m[called].name, ", which ", m[first].name,
                                         " calls too: a fused or asynchronous computation has one caller"));
        }
      }
    }
}

}  // namespace collet::hlo::verify
