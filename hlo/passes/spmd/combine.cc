// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/spmd/combine.h"

#include <algorithm>
#include <compare>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "hlo/ops/eval/body.h"
#include "hlo/passes/builder.h"

namespace collet::hlo::spmd {
namespace {

constexpr int64_t kMostBytes = int64_t{30} << 20;  // bytes of one combined all-reduce; larger ones gain nothing
constexpr size_t kMostKinds = 64;

// All-reduces can be combined if these properties are equal.
struct Kind {
  std::vector<std::vector<int64_t>> groups;
  Op combine = Op::INVALID;
  Type type = Type::Invalid;
  auto operator<=>(const Kind&) const = default;
};

std::optional<Kind> kind_of(const Module& module, const Instruction& instr) {
  if (instr.op != Op::ALL_REDUCE || instr.operands.size() != 1 || !instr.shape.is_array()) return std::nullopt;
  const auto& attrs = instr.as<CollectiveAttrs>();
  if (!attrs.global_ids || !attrs.channel || attrs.groups.iota || instr.shape.has_dynamic()) return std::nullopt;
  if (instr.extras && !instr.extras->control_predecessors.empty()) return std::nullopt;
  Kind out{{}, eval::single_op(module, instr.called[0]), instr.shape.type()};
  if (out.combine == Op::INVALID) return std::nullopt;
  for (const Dims& group : attrs.groups.groups) out.groups.emplace_back(group.begin(), group.end());
  return out;
}

using Members = std::vector<InstrId>;

// Returns lists of all-reduces of one kind, in order, that can be combined: none in a list depends on another in it.
std::vector<Members> gathered(const Module& module, const std::vector<InstrId>& order, const Kind& kind) {
  std::vector<Members> out(1);
  std::unordered_set<uint32_t> later;  // the members of the current list, and the instructions that depend on them
  int64_t bytes = 0;
  for (InstrId id : order) {
    const Instruction& instr = module[id];
    const auto waits = [&](InstrId other) { return later.contains(index_of(other)); };
    bool after = std::any_of(instr.operands.begin(), instr.operands.end(), waits);
    if (instr.extras)
      for (InstrId other : instr.extras->control_predecessors) after = after || waits(other);
    if (kind_of(module, instr) == kind) {
      if (after || bytes + instr.shape.byte_size() > kMostBytes) {
        out.emplace_back();
        later.clear();
        bytes = 0;
      }
      out.back().push_back(id);
      bytes += instr.shape.byte_size();
      after = true;
    }
    if (after) later.insert(index_of(id));
  }
  return out;
}

// Sorts the computation so that operands come before users; otherwise the order stays.
void put_in_order(Module& module, CompId computation) {
  std::vector<InstrId> order;
  std::unordered_set<uint32_t> placed;
  std::vector<std::pair<InstrId, bool>> open;
  for (InstrId from : std::exchange(module[computation].order, {})) {
    open.emplace_back(from, false);
    while (!open.empty()) {
      const auto [id, ready] = open.back();
      open.pop_back();
      if (placed.contains(index_of(id))) continue;
      if (ready) {
        placed.insert(index_of(id));
        order.push_back(id);
        continue;
      }
      open.emplace_back(id, true);
      const Instruction& instr = module[id];
      if (instr.extras)
        for (InstrId before : instr.extras->control_predecessors) open.emplace_back(before, false);
      for (size_t k = instr.operands.size(); k-- > 0;) open.emplace_back(instr.operand(k), false);
    }
  }
  module[computation].order = std::move(order);
}

void combine(Module& module, CompId computation, const Members& members) {
  Builder b(module, computation);
  const Instruction first = module[members[0]];
  b.set_origin(&first);
  std::vector<InstrId> operands;
  std::vector<Shape> shapes;
  for (InstrId id : members) {
    operands.push_back(module[id].operand(0));
    shapes.push_back(module[id].shape);
  }
  const std::vector<CompId> called(first.called.begin(), first.called.end());
  const InstrId all = b.op(Op::ALL_REDUCE, Shape::tuple(shapes), operands, first.attrs, called);
  std::unordered_map<uint32_t, InstrId> now;
  for (size_t i = 0; i < members.size(); ++i) now[index_of(members[i])] = b.get(all, static_cast<int64_t>(i));
  Computation& c = module[computation];
  std::erase_if(c.order, [&](InstrId id) { return now.contains(index_of(id)); });
  for (InstrId id : c.order)
    for (InstrId& operand : module[id].operands)
      if (const auto it = now.find(index_of(operand)); it != now.end()) operand = it->second;
  if (const auto it = now.find(index_of(c.root)); it != now.end()) c.root = it->second;
  put_in_order(module, computation);
}

}  // namespace

void combine_all_reduces(Module& module, CompId computation) {
  std::set<Kind> kinds, twice;
  for (InstrId id : module[computation].order) {
    auto kind = kind_of(module, module[id]);
    if (kind && !kinds.insert(*kind).second) twice.insert(*std::move(kind));
  }
  if (twice.size() > kMostKinds) return;
  // Combines one kind after the other, because combining one kind changes dependences and order for the next.
  for (const Kind& kind : twice)
    for (const Members& members : gathered(module, module[computation].order, kind))
      if (members.size() > 1) combine(module, computation, members);
}

}  // namespace collet::hlo::spmd
