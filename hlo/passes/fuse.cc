// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "hlo/passes/fuse_groups.h"
#include "hlo/passes/rewriter.h"

namespace collet::hlo {
namespace {

/// Turns groups of one computation into fusion instructions.
class Fuser {
 public:
  Fuser(Module& module, CompId computation, std::vector<FusionGroup> groups, std::vector<bool>& effects)
      : module_(module), computation_(computation), groups_(std::move(groups)), effects_(effects) {}

  // Returns the fusions made.
  std::vector<InstrId> run() {
    std::unordered_map<uint32_t, size_t> group_of;
    for (size_t g = 0; g < groups_.size(); ++g)
      for (InstrId id : groups_[g].members) group_of[index_of(id)] = g;
    const std::vector<InstrId> old = module_[computation_].order;
    std::vector<std::vector<InstrId>> outputs(groups_.size());
    find_outputs(old, group_of, outputs);
    std::vector<InstrId> made;
    std::unordered_map<uint32_t, InstrId> now;
    std::vector<std::vector<InstrId>> extra(groups_.size());  // the get-tuple-elements that follow each fusion
    for (size_t g = 0; g < groups_.size(); ++g) made.push_back(make(groups_[g], outputs[g], now, extra[g]));
    // Replaces uses by the fusions, then sorts the computation: a fusion comes after all its operands.
    for (InstrId id : old) remap(module_[id], now);
    for (InstrId id : made) remap(module_[id], now);
    auto& root = module_[computation_].root;
    if (auto it = now.find(index_of(root)); it != now.end()) root = it->second;
    std::vector<InstrId> all;
    for (InstrId id : old) {
      auto it = group_of.find(index_of(id));
      if (it == group_of.end()) {
        all.push_back(id);
      } else if (groups_[it->second].members.back() == id) {
        all.push_back(made[it->second]);
        all.insert(all.end(), extra[it->second].begin(), extra[it->second].end());
      }
    }
    sort(all);
    return made;
  }

 private:
  void find_outputs(const std::vector<InstrId>& old, const std::unordered_map<uint32_t, size_t>& group_of,
                    std::vector<std::vector<InstrId>>& outputs) const {
    const auto group = [&](InstrId id) {
      auto it = group_of.find(index_of(id));
      return it == group_of.end() ? SIZE_MAX : it->second;
    };
    std::unordered_set<uint32_t> seen;
    const auto output = [&](InstrId id) {
      const size_t g = group(id);
      if (g != SIZE_MAX && seen.insert(index_of(id)).second) outputs[g].push_back(id);
    };
    for (InstrId user : old)
      for (InstrId o : module_[user].operands)
        if (group(o) != SIZE_MAX && group(o) != group(user)) output(o);
    output(module_[computation_].root);
  }

  InstrId make(const FusionGroup& group, const std::vector<InstrId>& outputs,
               std::unordered_map<uint32_t, InstrId>& now, std::vector<InstrId>& extra) {
    const CompId body = module_.add_computation(module_.unique_computation_name("fused"));
    std::unordered_map<uint32_t, InstrId> inside;
    std::vector<InstrId> operands;
    std::unordered_set<uint32_t> members;
    for (InstrId id : group.members) members.insert(index_of(id));
    // Returns the value that stands for an operand of a member: another member, a copy of a repeatable instruction, or a
    // parameter.
    const auto value = [&](const auto& self, InstrId id, int depth) -> InstrId {
      if (auto it = inside.find(index_of(id)); it != inside.end()) return it->second;
      const bool repeat = depth > 0 && !members.contains(index_of(id)) && is_repeatable(module_, id);
      if (repeat) return inside[index_of(id)] = copy(body, id, [&](InstrId o) { return self(self, o, depth - 1); });
      const InstrId p = module_.append_parameter(body, static_cast<int64_t>(operands.size()), module_[id].shape);
      operands.push_back(id);
      return inside[index_of(id)] = p;
    };
    for (InstrId id : group.members)
      inside[index_of(id)] = copy(body, id, [&](InstrId o) { return value(value, o, 4); });
    std::vector<Shape> shapes;
    std::vector<InstrId> roots;
    for (InstrId id : outputs) {
      shapes.push_back(module_[id].shape);
      roots.push_back(inside.at(index_of(id)));
    }
    const bool one = outputs.size() == 1;
    const Shape shape = one ? shapes[0] : Shape::tuple(shapes);
    module_[body].root = one ? roots[0] : module_.append(body, Op::TUPLE, shape, roots);
    auto* attrs = module_.make<FusionAttrs>();
    attrs->kind = group.kind;
    const CompId called[] = {body};
    const InstrId fusion = module_.create(computation_, Op::FUSION, shape, operands, attrs, called);
    if (one) {
      now[index_of(outputs[0])] = fusion;
    } else {
      for (size_t i = 0; i < outputs.size(); ++i) {
        auto* index = module_.make<TupleIndexAttrs>();
        index->index = static_cast<int64_t>(i);
        const InstrId tuple[] = {fusion};
        extra.push_back(module_.create(computation_, Op::GET_TUPLE_ELEMENT, shapes[i], tuple, index));
        now[index_of(outputs[i])] = extra.back();
      }
    }
    return fusion;
  }

  template <typename Operand>
  InstrId copy(CompId body, InstrId id, const Operand& operand) {
    std::vector<InstrId> operands;
    for (InstrId o : module_[id].operands) operands.push_back(operand(o));
    const Instruction& instr = module_[id];
    const InstrId out = module_.append(body, instr.op, instr.shape, operands, instr.attrs, instr.called);
    module_[out].extras = instr.extras;
    return out;
  }

  void remap(Instruction& instr, const std::unordered_map<uint32_t, InstrId>& now) {
    for (InstrId& o : instr.operands)
      if (auto it = now.find(index_of(o)); it != now.end()) o = it->second;
  }

  // Sorts the computation: operands before users, instructions with effects in their old order, otherwise as close to
  // `all` as that allows.
  void sort(const std::vector<InstrId>& all) {
    std::unordered_set<uint32_t> placed;
    std::unordered_map<uint32_t, InstrId> effect_before;
    effects_.resize(module_.computation_limit());  // fusions have no effects
    InstrId last = InstrId::None;
    for (InstrId id : all) {
      if (!has_effect(module_, module_[id], effects_)) continue;
      if (last != InstrId::None) effect_before[index_of(id)] = last;
      last = id;
    }
    std::vector<InstrId> order;
    std::vector<std::pair<InstrId, size_t>> stack;
    for (InstrId start : all) {
      if (placed.contains(index_of(start))) continue;
      stack.emplace_back(start, 0);
      while (!stack.empty()) {
        auto& [id, next] = stack.back();
        const Instruction& instr = module_[id];
        const size_t before = instr.extras ? instr.extras->control_predecessors.size() : 0;
        const auto effect = effect_before.find(index_of(id));
        if (placed.contains(index_of(id))) {
          stack.pop_back();
        } else if (next < instr.operands.size() + before) {
          const InstrId o = next < instr.operands.size()
                                ? instr.operands[next]
                                : instr.extras->control_predecessors[next - instr.operands.size()];
          ++next;
          if (!placed.contains(index_of(o))) stack.emplace_back(o, 0);
        } else if (effect != effect_before.end() && !placed.contains(index_of(effect->second))) {
          stack.emplace_back(effect->second, 0);
        } else {
          placed.insert(index_of(id));
          order.push_back(id);
          stack.pop_back();
        }
      }
    }
    module_[computation_].order = std::move(order);
  }

  Module& module_;
  CompId computation_;
  std::vector<FusionGroup> groups_;
  std::vector<bool>& effects_;
};

void dissolve(Module& module, CompId computation, const std::unordered_set<uint32_t>& declined) {
  Rewriter rewriter(module, computation);
  for (InstrId id : rewriter.instructions()) {
    const Instruction& instr = rewriter.enter(id);
    if (declined.contains(index_of(id)))
      rewriter.replace(id, inline_computation(rewriter.builder(), instr.called[0], instr.operands));
    else if (instr.op == Op::GET_TUPLE_ELEMENT && module[instr.operand(0)].op == Op::TUPLE)
      rewriter.replace(id, module[instr.operand(0)].operand(static_cast<size_t>(instr.as<TupleIndexAttrs>().index)));
    else
      rewriter.keep(id);
  }
  rewriter.finish();
}

}  // namespace

Expected<bool> fuse(Module& module, PassContext& context) {
  // A caller that claims single instructions must also say which fusions it takes.
  if (context.claim && !context.take_fusions) return false;
  bool changed = false;
  // A group that the device declines is offered again as groups of one result, and at last with elementwise ops only.
  for (const int simpler : {0, 1, 2}) {
    FusionLimits limits;
    limits.several_outputs = simpler == 0;
    limits.reductions = limits.products = simpler < 2;
    limits.most_members = context.largest_fusion;
    if (context.prepare_claims) context.prepare_claims(module);
    std::vector<InstrId> made;
    std::vector<bool> effects = computations_with_effects(module);
    for (CompId c : flow_computations(module)) {
      auto groups = find_fusions(module, c, context, limits, effects);
      if (groups.empty()) continue;
      const auto fusions = Fuser(module, c, std::move(groups), effects).run();
      made.insert(made.end(), fusions.begin(), fusions.end());
    }
    if (made.empty()) break;
    COLLET_TRY(eliminate_dead(module, context).status());
    changed = true;
    if (!context.take_fusions) break;
    const std::vector<bool> taken = context.take_fusions(module, made);
    std::unordered_set<uint32_t> declined;
    for (size_t i = 0; i < made.size(); ++i)
      if (i >= taken.size() || !taken[i]) declined.insert(index_of(made[i]));
    if (declined.empty()) break;
    for (CompId c : flow_computations(module)) dissolve(module, c, declined);
    COLLET_TRY(eliminate_dead(module, context).status());
  }
  return changed;
}

}  // namespace collet::hlo
