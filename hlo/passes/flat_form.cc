// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/flat_form.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace collet::hlo {
namespace {

void collect(const Shape& shape, std::vector<Shape>& out) {
  if (!shape.is_tuple()) {
    out.push_back(shape);
    return;
  }
  for (const Shape& element : shape.elements()) {
    if (static_cast<int64_t>(out.size()) > kMostLeaves) return;
    collect(element, out);
  }
}

}  // namespace

std::vector<Shape> leaf_shapes(const Shape& shape) {
  std::vector<Shape> out;
  collect(shape, out);
  return out;
}

Shape flat_tuple(const Shape& shape) {
  return Shape::tuple(leaf_shapes(shape));
}

bool is_flat_tuple(const Shape& shape) {
  return shape.is_tuple() &&
         std::none_of(shape.elements().begin(), shape.elements().end(), [](const Shape& s) { return s.is_tuple(); });
}

Role role_of(Op op, size_t which) {
  switch (op) {
    case Op::WHILE:
      return which == 0 ? Role::Condition : Role::Body;
    case Op::CONDITIONAL:
      return Role::Body;
    case Op::CALL:
    case Op::FUSION:
      return Role::Inlined;
    default:
      return Role::Plain;
  }
}

bool awaits(Op op) {
  switch (op) {
    case Op::ASYNC_UPDATE:
    case Op::ASYNC_DONE:
    case Op::COPY_DONE:
    case Op::ALL_GATHER_DONE:
    case Op::ALL_REDUCE_DONE:
    case Op::COLLECTIVE_PERMUTE_DONE:
    case Op::SEND_DONE:
    case Op::RECV_DONE:
      return true;
    default:
      return false;
  }
}

bool takes_tuple(Op op) {
  return op == Op::WHILE || op == Op::CONDITIONAL || op == Op::OUTFEED || op == Op::CUSTOM_CALL || op == Op::SEND ||
         op == Op::OPT_BARRIER || op == Op::ASYNC_START;
}

bool is_flat_instr(const Module& module, const Instruction& instr, Role role, bool is_root) {
  if (!instr.shape.is_tuple()) return instr.op != Op::CONDITIONAL && instr.op != Op::WHILE;
  switch (instr.op) {
    case Op::PARAMETER:
      return (role == Role::Condition || role == Role::Body) && is_flat_tuple(instr.shape);
    case Op::TUPLE:
      return is_flat_tuple(instr.shape);
    case Op::WHILE:
    case Op::CONDITIONAL: {
      const bool made = std::all_of(instr.operands.begin() + (instr.op == Op::CONDITIONAL), instr.operands.end(),
                                    [&](InstrId o) { return module[o].op == Op::TUPLE; });
      return is_flat_tuple(instr.shape) && made;
    }
    case Op::CALL:
    case Op::FUSION:
      return is_flat_tuple(instr.shape) && !is_root;
    case Op::OPT_BARRIER:
      return is_flat_tuple(instr.shape) && module[instr.operand(0)].op == Op::TUPLE && !is_root;
    case Op::GET_TUPLE_ELEMENT: {
      const Op from = module[instr.operand(0)].op;
      return from == Op::CUSTOM_CALL || from == Op::INFEED || from == Op::RECV_DONE || from == Op::ASYNC_DONE;
    }
    case Op::COPY:
    case Op::CONSTANT:
    case Op::DOMAIN:
    case Op::ADD_DEPENDENCY:
      return false;
    default:
      return role == Role::Plain || !is_root;
  }
}

namespace {

// True for ops that take tuples as operands. A collective-permute in place, for example, takes its source and target
// offsets as a tuple of tuples, and HLO has no flat form of it.
bool wants_tuples(Op op) {
  return op == Op::COLLECTIVE_PERMUTE || op == Op::COLLECTIVE_PERMUTE_START || op == Op::CUSTOM_CALL ||
         op == Op::OUTFEED || op == Op::SEND || op == Op::ASYNC_START;
}

// Returns the tuples that are made for such ops only, and the tuples nested in them.
std::unordered_set<uint32_t> wanted_tuples(const Module& module, CompId c) {
  std::unordered_set<uint32_t> out;
  const auto& order = module[c].order;
  for (size_t k = order.size(); k-- > 0;) {
    const Instruction& instr = module[order[k]];
    if (!wants_tuples(instr.op) && !out.contains(index_of(order[k]))) continue;
    for (InstrId o : instr.operands)
      if (module[o].op == Op::TUPLE) out.insert(index_of(o));
  }
  return out;
}

}  // namespace

bool is_flat(const Module& module, CompId c, Role role) {
  const Computation& computation = module[c];
  const bool one_tuple = role == Role::Condition || role == Role::Body;
  if (one_tuple && !module[computation.parameters.at(0)].shape.is_tuple()) return false;
  if (role == Role::Body && module[computation.root].op != Op::TUPLE) return false;
  const std::unordered_set<uint32_t> wanted = wanted_tuples(module, c);
  std::unordered_map<uint32_t, bool> tuples;  // tuples, which other instructions must not take as operands
  for (InstrId id : computation.order) {
    const Instruction& instr = module[id];
    if (wanted.contains(index_of(id)) && id != computation.root) continue;
    if (!is_flat_instr(module, instr, role, id == computation.root)) return false;
    if (instr.op == Op::TUPLE) tuples[index_of(id)] = true;
    if (takes_tuple(instr.op)) continue;
    for (InstrId o : instr.operands)
      if (tuples.contains(index_of(o))) return false;
  }
  return true;
}

}  // namespace collet::hlo
