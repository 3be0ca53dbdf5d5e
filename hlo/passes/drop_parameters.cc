// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "hlo/passes/loops.h"
#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

// Removes parameters of calls and fusions that their bodies do not read, or that get the same value as another
// parameter, and results of calls and fusions that no instruction reads. The entry's parameters and results stay as
// they are.

namespace collet::hlo {
namespace {

bool is_candidate(const Instruction& instr, const std::vector<uint32_t>& callers) {
  if (instr.op != Op::CALL && instr.op != Op::FUSION) return false;
  // The name of a composite defines the meaning of each parameter, so its parameters stay.
  if (instr.op == Op::CALL && instr.as<CallAttrs>().is_composite) return false;
  if (instr.op == Op::FUSION && !instr.as<FusionAttrs>().aliasing.empty()) return false;
  return callers[index_of(instr.called[0])] == 1;
}

// Keeps only the results that are read, if the op has several results and each user reads exactly one of them by
// get-tuple-element.
bool drop_results(Module& module, CompId caller, InstrId call, const UserMap& users) {
  const CompId c = module[call].called[0];
  const Instruction root = module[module[c].root];
  if (root.op != Op::TUPLE || module[caller].root == call || used_in(module, c).size() == 0) return false;
  std::vector<bool> needed(root.operands.size());
  for (InstrId user : users.users(call)) {
    if (module[user].op != Op::GET_TUPLE_ELEMENT) return false;
    needed[static_cast<size_t>(module[user].as<TupleIndexAttrs>().index)] = true;
  }
  const auto count = static_cast<size_t>(std::count(needed.begin(), needed.end(), true));
  if (count == needed.size() || count == 0) return false;
  std::vector<InstrId> operands;
  std::vector<Shape> shapes;
  std::vector<int64_t> number(needed.size(), -1);
  for (size_t i = 0; i < needed.size(); ++i) {
    if (!needed[i]) continue;
    number[i] = static_cast<int64_t>(operands.size());
    operands.push_back(root.operand(i));
    shapes.push_back(module[root.operand(i)].shape);
  }
  Instruction& tuple = module[own_root(module, c)];
  tuple.operands = module.arena().list<InstrId>(std::span<const InstrId>(operands));
  tuple.shape = Shape::tuple(shapes);
  module[call].shape = tuple.shape;
  for (InstrId id : {call, module[c].root}) {
    Instruction& instr = module[id];
    if (!instr.extras || !instr.extras->sharding) continue;
    Extras extras = *instr.extras;
    extras.sharding = nullptr;
    instr.extras = module.arena().make<Extras>(extras);
  }
  for (InstrId user : users.users(call)) {
    auto* attrs = module.make<TupleIndexAttrs>();
    attrs->index = number[static_cast<size_t>(module[user].as<TupleIndexAttrs>().index)];
    module[user].attrs = attrs;
  }
  return true;
}

}  // namespace

bool drop_operands(Module& module, InstrId call, bool merge) {
  const CompId c = module[call].called[0];
  const std::unordered_set<uint32_t> used = used_in(module, c);
  std::unordered_map<uint32_t, InstrId> first;  // operand -> the first parameter that gets it
  std::unordered_map<uint32_t, InstrId> same;   // parameter -> the parameter that replaces it
  std::vector<InstrId> operands, parameters;
  for (size_t i = 0; i < module[c].parameters.size(); ++i) {
    const InstrId parameter = module[c].parameters[i], operand = module[call].operand(i);
    if (!used.contains(index_of(parameter))) continue;
    const auto [it, fresh] = first.try_emplace(index_of(operand), parameter);
    if (merge && !fresh && module[it->second].shape == module[parameter].shape) {
      same[index_of(parameter)] = it->second;
      continue;
    }
    operands.push_back(operand);
    parameters.push_back(parameter);
  }
  if (parameters.size() == module[c].parameters.size()) return false;
  const std::unordered_set<InstrId> kept(parameters.begin(), parameters.end());
  std::vector<InstrId> order(parameters);
  for (InstrId id : module[c].order) {
    if (module[id].op == Op::PARAMETER) continue;
    for (InstrId& o : module[id].operands)
      if (auto it = same.find(index_of(o)); it != same.end()) o = it->second;
    replace_predecessors(module, module[id], [&](InstrId p) {
      const auto it = same.find(index_of(p));
      return std::vector{it == same.end() ? p : it->second};
    });
    order.push_back(id);
  }
  if (auto it = same.find(index_of(module[c].root)); it != same.end()) module[c].root = it->second;
  for (size_t i = 0; i < parameters.size(); ++i) {
    auto* attrs = module.make<ParameterAttrs>();
    *attrs = module[parameters[i]].as<ParameterAttrs>();
    attrs->number = static_cast<int64_t>(i);
    module[parameters[i]].attrs = attrs;
  }
  module[c].order = std::move(order);
  module[c].parameters = std::move(parameters);
  module[call].operands = module.arena().list<InstrId>(std::span<const InstrId>(operands));
  return true;
}

Expected<bool> drop_parameters(Module& module, PassContext& context) {
  bool changed = false;
  for (bool again = true; again;) {
    again = false;
    // Callers come first: a result that a caller no longer reads need not be computed by the callees of its body.
    std::vector<CompId> order = post_order(module);
    const std::vector<uint32_t> callers = count_callers(module);
    for (size_t k = order.size(); k-- > 0;) {
      const CompId c = order[k];
      std::vector<InstrId> calls;
      for (InstrId id : module[c].order)
        if (is_candidate(module[id], callers)) calls.push_back(id);
      if (calls.empty()) continue;
      const UserMap users(module, c);
      for (InstrId call : calls) again |= drop_results(module, c, call, users);
    }
    if (again) COLLET_TRY(eliminate_dead(module, context).status());
    for (CompId c : post_order(module))
      for (InstrId id : module[c].order)
        if (is_candidate(module[id], callers)) again |= drop_operands(module, id, true);
    if (!again) break;
    changed = true;
    COLLET_TRY(eliminate_dead(module, context).status());
  }
  return changed;
}

}  // namespace collet::hlo
