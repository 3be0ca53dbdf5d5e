// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <utility>

#include "hlo/verify/context.h"

namespace collet::hlo::verify {
namespace {

constexpr uint32_t kNowhere = UINT32_MAX;

// Positions by id: that of each computation in the module's order, and that of each instruction in its computation's
// order.
struct Places {
  std::vector<uint32_t> computation;
  std::vector<uint32_t> instruction;
};

bool check_computations(Context& context, Places& places) {
  const Module& m = context.module;
  places.computation.assign(m.computation_limit(), kNowhere);
  for (size_t i = 0; i < m.computations().size(); ++i) {
    const uint32_t c = index_of(m.computations()[i]);
    if (c >= m.computation_limit() || places.computation[c] != kNowhere) {
      context.complain(concat("the module lists a computation that does not exist, or one twice, at ", i));
      return false;
    }
    places.computation[c] = static_cast<uint32_t>(i);
  }
  const uint32_t entry = index_of(m.entry());
  if (entry >= m.computation_limit() || places.computation[entry] == kNowhere) {
    context.complain("the module has no entry computation");
    return false;
  }
  return true;
}

bool check_instruction(Context& context, CompId c, InstrId id) {
  const Module& m = context.module;
  const Instruction& instr = m[id];
  const auto op = static_cast<int>(instr.op);
  if (op < 1 || op > kLastOp) {
    context.complain(instr, concat("no such opcode: ", op));
    return false;
  }
  if (instr.parent != c) {
    context.complain(instr, concat("stands in computation ", m[c].name, ", but belongs to another one"));
    return false;
  }
  if (!instr.shape.valid()) {
    context.complain(instr, "has no shape");
    return false;
  }
  if (op_info(instr.op).record != Record::None && !instr.attrs) {
    context.complain(instr, "has no attributes");
    return false;
  }
  return true;
}

// Checks that operands come earlier in the same computation, and called computations earlier in the module.
bool check_uses(Context& context, const Places& places, CompId c, InstrId id) {
  const Module& m = context.module;
  const Instruction& instr = m[id];
  for (size_t i = 0; i < instr.operands.size(); ++i) {
    const uint32_t o = index_of(instr.operands[i]);
    if (o >= m.instruction_limit() || places.instruction[o] == kNowhere) {
      context.complain(instr, concat("operand ", i, " stands in no computation"));
      return false;
    }
    if (m[instr.operands[i]].parent != c) {
      context.complain(instr, concat("operand ", i, ", ", m[instr.operands[i]].name, ", stands in computation ",
                                     m[m[instr.operands[i]].parent].name));
      return false;
    }
    if (places.instruction[o] >= places.instruction[index_of(id)]) {
      context.complain(instr, concat("operand ", i, ", ", m[instr.operands[i]].name, ", does not come before it"));
      return false;
    }
  }
  for (CompId called : instr.called) {
    const uint32_t k = index_of(called);
    if (k >= m.computation_limit() || places.computation[k] == kNowhere) {
      context.complain(instr, "calls a computation that is not in the module");
      return false;
    }
    if (called == m.entry()) {
      context.complain(instr, concat("calls ", m[called].name, ", the entry computation"));
      return false;
    }
    if (places.computation[k] >= places.computation[index_of(c)]) {
      context.complain(instr, concat("calls ", m[called].name, ", which does not come before ", m[c].name));
      return false;
    }
  }
  return true;
}

bool check_parameters(Context& context, CompId c) {
  const Module& m = context.module;
  const Computation& computation = m[c];
  size_t count = 0;
  std::vector<bool> seen(computation.parameters.size());
  for (InstrId id : computation.order) {
    if (m[id].op != Op::PARAMETER) continue;
    ++count;
    const int64_t number = m[id].as<ParameterAttrs>().number;
    if (number < 0 || static_cast<size_t>(number) >= seen.size() ||
        computation.parameters[static_cast<size_t>(number)] != id) {
      context.complain(m[id], concat("parameter number ", number, " occurs twice or is not one of 0 to the count"));
      return false;
    }
    seen[static_cast<size_t>(number)] = true;
  }
  for (size_t i = 0; i < seen.size(); ++i)
    if (!seen[i]) {
      context.complain(computation, concat("there is no parameter ", i));
      return false;
    }
  return count == seen.size();
}

bool check_root(Context& context, const Places& places, CompId c) {
  const Module& m = context.module;
  const uint32_t root = index_of(m[c].root);
  if (root < m.instruction_limit() && places.instruction[root] != kNowhere && m[m[c].root].parent == c) return true;
  context.complain(m[c], "the root is not one of its instructions");
  return false;
}

void check_names(Context& context, const Computation& computation) {
  const auto name = [&](InstrId id) { return context.module[id].name; };
  std::vector<std::pair<size_t, uint32_t>> hashes;
  hashes.reserve(computation.order.size());
  for (InstrId id : computation.order) hashes.emplace_back(std::hash<std::string_view>()(name(id)), index_of(id));
  std::sort(hashes.begin(), hashes.end());
  for (size_t i = 1; i < hashes.size(); ++i)
    for (size_t k = i; k-- > 0 && hashes[k].first == hashes[i].first && !context.full();)
      if (const auto id = static_cast<InstrId>(hashes[i].second);
          name(id) == name(static_cast<InstrId>(hashes[k].second))) {
        context.complain(context.module[id], "the name occurs twice in its computation");
        break;
      }
}

// Checks that control edges stay inside of a computation and form no cycle with the operands.
bool check_control_edges(Context& context, const Places& places, CompId c) {
  const Module& m = context.module;
  bool forward = false;
  for (InstrId id : m[c].order) {
    if (!m[id].extras) continue;
    for (InstrId before : m[id].extras->control_predecessors) {
      const uint32_t p = index_of(before);
      if (p >= m.instruction_limit() || places.instruction[p] == kNowhere || m[before].parent != c) {
        context.complain(m[id], "a control predecessor stands in another computation");
        return false;
      }
      forward |= places.instruction[p] >= places.instruction[index_of(id)];
    }
  }
  if (!forward) return true;
  // Some edge points backwards in the order, so look for cycles by a topological sort.
  const auto& order = m[c].order;
  std::vector<uint32_t> waits(order.size());
  std::vector<std::vector<uint32_t>> next(order.size());
  const auto add_edge = [&](InstrId from, size_t to) {
    next[places.instruction[index_of(from)]].push_back(static_cast<uint32_t>(to));
    ++waits[to];
  };
  for (size_t i = 0; i < order.size(); ++i) {
    for (InstrId o : m[order[i]].operands) add_edge(o, i);
    if (m[order[i]].extras)
      for (InstrId p : m[order[i]].extras->control_predecessors) add_edge(p, i);
  }
  std::vector<uint32_t> ready;
  for (size_t i = 0; i < order.size(); ++i)
    if (waits[i] == 0) ready.push_back(static_cast<uint32_t>(i));
  size_t done = 0;
  for (; done < ready.size(); ++done)
    for (uint32_t n : next[ready[done]])
      if (--waits[n] == 0) ready.push_back(n);
  if (done == order.size()) return true;
  const auto stuck = std::find_if(waits.begin(), waits.end(), [](uint32_t n) { return n != 0; });
  context.complain(m[order[static_cast<size_t>(stuck - waits.begin())]], "control edges and operands form a circle");
  return false;
}

}  // namespace

bool verify_structure(Context& context) {
  const Module& m = context.module;
  Places places;
  if (!check_computations(context, places)) return false;
  places.instruction.assign(m.instruction_limit(), kNowhere);
  bool sound = true;
  for (CompId c : m.computations()) {
    const auto& order = m[c].order;
    for (size_t i = 0; i < order.size(); ++i) {
      const uint32_t id = index_of(order[i]);
      if (id >= m.instruction_limit() || places.instruction[id] != kNowhere) {
        context.complain(m[c], concat("instruction ", i, " does not exist or occurs twice"));
        return false;
      }
      places.instruction[id] = static_cast<uint32_t>(i);
      if (!check_instruction(context, c, order[i])) return false;
    }
  }
  for (CompId c : m.computations()) {
    for (InstrId id : m[c].order) {
      if (context.full()) return false;
      sound &= check_uses(context, places, c, id);
    }
    sound &= check_parameters(context, c);
    sound &= check_root(context, places, c);
    if (sound) sound &= check_control_edges(context, places, c);
    check_names(context, m[c]);
  }
  return sound && !context.full();
}

}  // namespace collet::hlo::verify
