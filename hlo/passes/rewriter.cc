// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/rewriter.h"

#include <algorithm>
#include <unordered_set>

namespace collet::hlo {

Rewriter::Rewriter(Module& module, CompId computation)
    : module_(module), computation_(computation), builder_(module, computation) {
  old_.swap(module_[computation].order);
  module_[computation].order.reserve(old_.size());
}

InstrId Rewriter::now(InstrId id) const {
  if (replaced_.empty()) return id;
  auto it = replaced_.find(index_of(id));
  return it == replaced_.end() ? id : it->second;
}

Instruction& Rewriter::enter(InstrId id) {
  Instruction& instr = module_[id];
  builder_.set_origin(&instr);
  if (replaced_.empty()) return instr;
  for (InstrId& operand : instr.operands) operand = now(operand);
  replace_predecessors(module_, instr, [this](InstrId p) { return std::vector{now(p)}; });
  return instr;
}

void Rewriter::replace(InstrId id, InstrId with) {
  if (with != InstrId::None) replaced_.insert_or_assign(index_of(id), with);
}

bool Rewriter::finish() {
  Computation& computation = module_[computation_];
  computation.root = now(computation.root);
  return !replaced_.empty();
}

Expected<bool> rewrite_wanted(Module& module, const std::function<bool(InstrId)>& wanted,
                              const std::function<InstrId(Builder&, const Instruction&)>& make) {
  bool changed = false;
  for (CompId c : flow_computations(module)) {
    std::vector<bool> chosen;
    for (InstrId id : module[c].order) chosen.push_back(wanted(id));
    if (std::find(chosen.begin(), chosen.end(), true) == chosen.end()) continue;
    Rewriter rewriter(module, c);
    for (size_t i = 0; i < chosen.size(); ++i) {
      const InstrId id = rewriter.instructions()[i];
      const Instruction& instr = rewriter.enter(id);
      const InstrId with = chosen[i] ? make(rewriter.builder(), instr) : InstrId::None;
      if (!rewriter.builder().status().ok()) {
        rewriter.finish();
        return rewriter.builder().status().with_prefix(std::string(instr.name) + ": ");
      }
      if (with == InstrId::None)
        rewriter.keep(id);
      else
        rewriter.replace(id, with);
    }
    changed |= rewriter.finish();
  }
  return changed;
}

namespace {

void visit(const Module& module, CompId root, bool flow_only, std::vector<CompId>& out) {
  std::vector<uint8_t> state(module.computation_limit());
  // Uses an explicit stack, because calls in the input may be nested to any depth.
  struct Frame {
    CompId id;
    std::vector<CompId> callees;
    size_t next = 0;
  };
  const auto callees = [&](CompId id) {
    std::vector<CompId> found;
    for (InstrId i : module[id].order) {
      const Instruction& instr = module[i];
      if (instr.called.empty()) continue;
      if (flow_only && !is_flow(instr)) continue;
      for (CompId c : instr.called) found.push_back(c);
    }
    return found;
  };
  std::vector<Frame> stack;
  stack.push_back({root, callees(root)});
  state[index_of(root)] = 1;
  while (!stack.empty()) {
    Frame& frame = stack.back();
    if (frame.next == frame.callees.size()) {
      out.push_back(frame.id);
      stack.pop_back();
      continue;
    }
    const CompId callee = frame.callees[frame.next++];
    if (state[index_of(callee)]) continue;
    state[index_of(callee)] = 1;
    stack.push_back({callee, callees(callee)});
  }
}

}  // namespace

bool is_flow(const Instruction& instr) {
  return instr.op == Op::WHILE || instr.op == Op::CONDITIONAL ||
         (instr.op == Op::CALL && !instr.as<CallAttrs>().is_composite);
}

std::vector<CompId> post_order(const Module& module) {
  std::vector<CompId> out;
  if (module.entry() != CompId::None) visit(module, module.entry(), false, out);
  return out;
}

std::vector<CompId> flow_computations(const Module& module) {
  std::vector<CompId> out;
  if (module.entry() != CompId::None) visit(module, module.entry(), true, out);
  return out;
}

void order_computations(Module& module) {
  if (module.entry() != CompId::None) module.computations() = post_order(module);
}

void replace_predecessors(Module& module, Instruction& instr, const std::function<std::vector<InstrId>(InstrId)>& now) {
  if (!instr.extras || instr.extras->control_predecessors.empty()) return;
  std::vector<InstrId> before;
  std::unordered_set<InstrId> listed;
  bool changed = false;
  for (const InstrId p : instr.extras->control_predecessors) {
    for (const InstrId q : now(p)) {
      if (listed.insert(q).second) before.push_back(q);
      changed = changed || q != p;
    }
    changed = changed || !listed.contains(p);
  }
  if (!changed) return;
  Extras extras = *instr.extras;
  extras.control_predecessors = module.arena().list(before);
  instr.extras = module.arena().make<Extras>(extras);
}

const Extras* without_predecessors(Module& module, const Extras* extras) {
  if (!extras || extras->control_predecessors.empty()) return extras;
  Extras copy = *extras;
  copy.control_predecessors = {};
  return module.arena().make<Extras>(copy);
}

namespace {

InstrId copy_into(Module& module, CompId to, const Instruction& instr,
                  const std::unordered_map<uint32_t, InstrId>& map) {
  std::vector<InstrId> operands;
  for (InstrId o : instr.operands) operands.push_back(map.at(index_of(o)));
  const std::string_view stem = instr.name.substr(0, instr.name.find_last_not_of("0123456789.") + 1);
  const InstrId copy = module.append(to, instr.op, instr.shape, operands, instr.attrs, instr.called,
                                     module.unique_name(stem.empty() ? op_info(instr.op).text : stem));
  module[copy].extras = without_predecessors(module, instr.extras);
  module[copy].line = instr.line;
  return copy;
}

}  // namespace

CompId clone_computation(Module& module, CompId from, std::string_view stem) {
  return clone_computation_as(module, from,
                              std::string(module.unique_computation_name(stem.empty() ? module[from].name : stem)));
}

CompId clone_computation_as(Module& module, CompId from, const std::string& name) {
  const CompId to = module.add_computation(name);
  module[to].execution_thread = module[from].execution_thread;
  std::unordered_map<uint32_t, InstrId> map;
  for (InstrId id : module[from].order) map[index_of(id)] = copy_into(module, to, module[id], map);
  for (InstrId p : module[from].parameters) module[to].parameters.push_back(map.at(index_of(p)));
  module[to].root = map.at(index_of(module[from].root));
  return to;
}

InstrId inline_computation(Builder& builder, CompId from, std::span<const InstrId> arguments) {
  Module& module = builder.module();
  if (!builder.status().ok()) return InstrId::None;
  if (arguments.size() != module[from].parameters.size())
    return builder.fail(internal_error("computation " + std::string(module[from].name) + " has " +
                                       std::to_string(module[from].parameters.size()) + " parameters, not " +
                                       std::to_string(arguments.size())));
  std::unordered_map<uint32_t, InstrId> map;
  for (InstrId id : module[from].order) {
    const Instruction& instr = module[id];
    map[index_of(id)] = instr.op == Op::PARAMETER ? arguments[static_cast<size_t>(instr.as<ParameterAttrs>().number)]
                                                  : copy_into(module, builder.computation(), instr, map);
  }
  return map.at(index_of(module[from].root));
}

bool has_effect(const Module&, const Instruction& instr, const std::vector<bool>& computations) {
  if (has_side_effect(instr.op)) return true;
  if (instr.op == Op::CUSTOM_CALL && instr.as<CustomCallAttrs>().has_side_effect) return true;
  for (CompId c : instr.called)
    if (computations[index_of(c)]) return true;
  return false;
}

std::vector<bool> computations_with_effects(const Module& module) {
  std::vector<bool> out(module.computation_limit());
  for (CompId c : post_order(module))
    for (InstrId id : module[c].order)
      if (has_effect(module, module[id], out)) {
        out[index_of(c)] = true;
        break;
      }
  return out;
}

std::vector<bool> asynchronous_computations(const Module& module) {
  std::vector<bool> out(module.computation_limit());
  for (CompId c : module.computations())
    for (InstrId id : module[c].order)
      if (op_info(module[id].op).family == Family::asynchronous)
        for (CompId called : module[id].called) out[index_of(called)] = true;
  return out;
}

const Literal* constant_value(const Module& module, InstrId id) {
  const Instruction* instr = &module[id];
  if (instr->op == Op::BROADCAST && module[instr->operand(0)].shape.rank() == 0) instr = &module[instr->operand(0)];
  if (instr->op != Op::CONSTANT || !instr->shape.is_array()) return nullptr;
  return &module.literal(*instr);
}

const Literal* splat_value(const Module& module, InstrId id) {
  const Literal* value = constant_value(module, id);
  return value && value->is_splat() ? value : nullptr;
}

std::unordered_set<uint32_t> used_in(const Module& module, CompId c) {
  std::unordered_set<uint32_t> used{index_of(module[c].root)};
  for (InstrId id : module[c].order) {
    for (InstrId o : module[id].operands) used.insert(index_of(o));
    if (module[id].extras)
      for (InstrId p : module[id].extras->control_predecessors) used.insert(index_of(p));
  }
  return used;
}

Expected<bool> repeat_until_stable(Module& module, PassContext& context, int most_rounds,
                                   const std::function<Expected<bool>()>& once) {
  bool changed = false;
  for (int round = 0; round < most_rounds; ++round) {
    COLLET_ASSIGN(const bool again, once());
    if (!again) break;
    changed = true;
    COLLET_TRY(eliminate_dead(module, context).status());
  }
  return changed;
}

std::unique_ptr<Module> with_results(const Module& module, std::span<const InstrId> values) {
  std::unique_ptr<Module> out = module.clone();
  // Instructions of the copy have other ids, in the same order.
  std::unordered_map<uint32_t, InstrId> copies;
  const std::vector<InstrId>& order = module.entry_computation().order;
  for (size_t i = 0; i < order.size(); ++i) copies[index_of(order[i])] = out->entry_computation().order[i];
  std::vector<InstrId> results;
  std::vector<Shape> shapes;
  for (const InstrId id : values) {
    results.push_back(copies.at(index_of(id)));
    shapes.push_back(module[id].shape);
  }
  out->entry_computation().root = out->append(out->entry(), Op::TUPLE, Shape::tuple(shapes), results);
  out->header() = {};
  return out;
}

}  // namespace collet::hlo
