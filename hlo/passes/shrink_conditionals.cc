// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "hlo/passes/loops.h"
#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

// Removes from conditionals: results that are not read, results that every branch passes through from the same value
// outside, operands that a branch does not read, and operands that are small constants, which become constants in the
// branch.

namespace collet::hlo {
namespace {

constexpr int64_t kLargestSunk = 1024;
constexpr int kMostRounds = 8;

/// A conditional in the form that flatten_tuples produces: it takes and returns flat tuples.
struct Choice {
  InstrId op = InstrId::None;
  size_t results = 0;
};

bool reads_elements_only(const Module& module, CompId c) {
  const InstrId parameter = module[c].parameters.at(0);
  for (InstrId user : module[c].order)
    for (InstrId o : module[user].operands)
      if (o == parameter && module[user].op != Op::GET_TUPLE_ELEMENT) return false;
  return true;
}

std::optional<Choice> find_choice(const Module& module, CompId c, InstrId id, const UserMap& users,
                                  const std::vector<uint32_t>& callers) {
  const Instruction& instr = module[id];
  if (instr.op != Op::CONDITIONAL || !instr.shape.is_tuple() || module[c].root == id) return std::nullopt;
  for (InstrId user : users.users(id))
    if (module[user].op != Op::GET_TUPLE_ELEMENT) return std::nullopt;
  for (size_t k = 0; k < instr.called.size(); ++k) {
    const CompId branch = instr.called[k];
    if (callers[index_of(branch)] != 1 || module[instr.operand(k + 1)].op != Op::TUPLE ||
        module[module[branch].root].op != Op::TUPLE || !reads_elements_only(module, branch))
      return std::nullopt;
  }
  return Choice{id, instr.shape.elements().size()};
}

class Shrinker {
 public:
  Shrinker(Module& module, CompId caller, const Choice& choice, const UserMap& users)
      : module_(module), caller_(caller), choice_(choice), users_(users) {}

  bool run() {
    bool changed = sink_constants();
    changed |= pass_by();
    changed |= drop_results();
    changed |= drop_operands();
    return changed;
  }
  /// Instructions to insert before the conditional.
  const std::vector<InstrId>& before() const { return before_; }
  /// Maps reads of results to the equal value outside of the conditional.
  const std::unordered_map<uint32_t, InstrId>& replaced() const { return replaced_; }

 private:
  Instruction& op() { return module_[choice_.op]; }
  InstrId operand(size_t branch) { return op().operand(branch + 1); }

  bool sink_constants() {
    bool changed = false;
    for (size_t k = 0; k < op().called.size(); ++k) {
      const CompId c = op().called[k];
      std::unordered_map<uint32_t, InstrId> reads;
      std::vector<InstrId> order;
      for (InstrId id : module_[c].order) {
        for (InstrId& o : module_[id].operands)
          if (auto it = reads.find(index_of(o)); it != reads.end()) {
            o = it->second;
            changed = true;
          }
        order.push_back(id);
        const auto read = state_read(module_, c, id);
        if (!read) continue;
        const Instruction value = module_[module_[operand(k)].operand(*read)];
        if (value.op != Op::CONSTANT || !value.shape.is_array() || value.shape.byte_size() > kLargestSunk) continue;
        const InstrId constant = module_.create(c, Op::CONSTANT, value.shape, {}, value.attrs);
        reads[index_of(id)] = constant;
        order.push_back(constant);
      }
      if (!reads.empty()) module_[c].order = std::move(order);
    }
    return changed;
  }

  // Returns the value outside of the conditional that result `i` is in every branch; None if there is none.
  InstrId passed_by(size_t i) {
    InstrId value = InstrId::None;
    for (size_t k = 0; k < op().called.size(); ++k) {
      const CompId c = op().called[k];
      const auto read = state_read(module_, c, module_[module_[c].root].operand(i));
      if (!read) return InstrId::None;
      const InstrId here = module_[operand(k)].operand(*read);
      if (k > 0 && here != value) return InstrId::None;
      value = here;
    }
    return value;
  }

  bool pass_by() {
    bool changed = false;
    for (size_t i = 0; i < choice_.results; ++i) {
      const InstrId value = passed_by(i);
      if (value == InstrId::None) continue;
      for (InstrId user : users_.users(choice_.op)) {
        if (static_cast<size_t>(module_[user].as<TupleIndexAttrs>().index) != i || replaced_.contains(index_of(user)))
          continue;
        replaced_[index_of(user)] = value;
        changed = true;
      }
    }
    return changed;
  }

  bool drop_results() {
    std::vector<bool> needed(choice_.results);
    for (InstrId user : users_.users(choice_.op))
      if (!replaced_.contains(index_of(user)))
        needed[static_cast<size_t>(module_[user].as<TupleIndexAttrs>().index)] = true;
    if (std::find(needed.begin(), needed.end(), false) == needed.end()) return false;
    for (CompId c : op().called) narrow(own_root(module_, c), needed);
    op().shape = module_[module_[op().called[0]].root].shape;
    drop_sharding(op());
    const std::vector<int64_t> number = numbers(needed);
    for (InstrId user : users_.users(choice_.op))
      if (!replaced_.contains(index_of(user))) renumber(user, number);
    return true;
  }

  bool drop_operands() {
    bool changed = false;
    for (size_t k = 0; k < op().called.size(); ++k) {
      const CompId c = op().called[k];
      drop_unread(c);
      const InstrId parameter = module_[c].parameters[0];
      std::vector<bool> needed(module_[parameter].shape.elements().size());
      for (InstrId id : module_[c].order)
        if (const auto read = state_read(module_, c, id)) needed[*read] = true;
      if (std::find(needed.begin(), needed.end(), false) == needed.end()) continue;
      // The tuple may also be the operand of another branch, so a new one is made.
      const std::vector<InstrId> elements(module_[operand(k)].operands.begin(), module_[operand(k)].operands.end());
      const InstrId tuple = module_.create(caller_, Op::TUPLE, module_[operand(k)].shape, elements);
      narrow(tuple, needed);
      before_.push_back(tuple);
      op().operands[k + 1] = tuple;
      module_[parameter].shape = module_[tuple].shape;
      drop_sharding(module_[parameter]);
      const std::vector<int64_t> number = numbers(needed);
      for (InstrId id : module_[c].order)
        if (state_read(module_, c, id)) renumber(id, number);
      changed = true;
    }
    return changed;
  }

  // Removes get-tuple-elements without users, which do not count as reads.
  void drop_unread(CompId c) {
    std::unordered_map<uint32_t, bool> used;
    used[index_of(module_[c].root)] = true;
    for (InstrId id : module_[c].order) {
      for (InstrId o : module_[id].operands) used[index_of(o)] = true;
      if (module_[id].extras)
        for (InstrId p : module_[id].extras->control_predecessors) used[index_of(p)] = true;
    }
    std::erase_if(module_[c].order,
                  [&](InstrId id) { return module_[id].op == Op::GET_TUPLE_ELEMENT && !used[index_of(id)]; });
  }

  void narrow(InstrId tuple, const std::vector<bool>& needed) {
    std::vector<InstrId> operands;
    std::vector<Shape> shapes;
    for (size_t i = 0; i < needed.size(); ++i)
      if (needed[i]) {
        operands.push_back(module_[tuple].operand(i));
        shapes.push_back(module_[operands.back()].shape);
      }
    module_[tuple].operands = module_.arena().list<InstrId>(std::span<const InstrId>(operands));
    module_[tuple].shape = Shape::tuple(std::move(shapes));
    drop_sharding(module_[tuple]);
  }

  void drop_sharding(Instruction& instr) {
    if (!instr.extras || !instr.extras->sharding) return;
    Extras extras = *instr.extras;
    extras.sharding = nullptr;
    instr.extras = module_.arena().make<Extras>(extras);
  }

  static std::vector<int64_t> numbers(const std::vector<bool>& needed) {
    std::vector<int64_t> out(needed.size(), -1);
    int64_t next = 0;
    for (size_t i = 0; i < needed.size(); ++i)
      if (needed[i]) out[i] = next++;
    return out;
  }

  void renumber(InstrId read, const std::vector<int64_t>& number) {
    auto* attrs = module_.make<TupleIndexAttrs>();
    attrs->index = number[static_cast<size_t>(module_[read].as<TupleIndexAttrs>().index)];
    module_[read].attrs = attrs;
  }

  Module& module_;
  const CompId caller_;
  const Choice choice_;
  const UserMap& users_;
  std::vector<InstrId> before_;
  std::unordered_map<uint32_t, InstrId> replaced_;
};

bool shrink_in(Module& module, CompId c, const std::vector<uint32_t>& callers) {
  std::vector<Choice> choices;
  bool any = false;
  for (InstrId id : module[c].order) any |= module[id].op == Op::CONDITIONAL;
  if (!any) return false;
  const UserMap users(module, c);
  for (InstrId id : module[c].order)
    if (const auto choice = find_choice(module, c, id, users, callers)) choices.push_back(*choice);
  bool changed = false;
  std::unordered_map<uint32_t, std::vector<InstrId>> before;
  std::unordered_map<uint32_t, InstrId> replaced;
  for (const Choice& choice : choices) {
    Shrinker shrinker(module, c, choice, users);
    changed |= shrinker.run();
    before[index_of(choice.op)] = shrinker.before();
    replaced.insert(shrinker.replaced().begin(), shrinker.replaced().end());
  }
  if (!changed) return false;
  std::vector<InstrId> order;
  Rewriter rewriter(module, c);
  for (InstrId id : rewriter.instructions()) {
    if (auto it = before.find(index_of(id)); it != before.end())
      for (InstrId tuple : it->second) {
        rewriter.enter(tuple);
        rewriter.keep(tuple);
      }
    rewriter.enter(id);
    if (auto it = replaced.find(index_of(id)); it != replaced.end())
      rewriter.replace(id, rewriter.now(it->second));
    else
      rewriter.keep(id);
  }
  rewriter.finish();
  return true;
}

}  // namespace

Expected<bool> shrink_conditionals(Module& module, PassContext& context) {
  return repeat_until_stable(module, context, kMostRounds, [&]() -> Expected<bool> {
    bool changed = false;
    const std::vector<uint32_t> callers = count_callers(module);
    for (CompId c : flow_computations(module)) changed |= shrink_in(module, c, callers);
    return changed;
  });
}

}  // namespace collet::hlo
