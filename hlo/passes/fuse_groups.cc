// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/fuse_groups.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "hlo/passes/rewriter.h"

namespace collet::hlo {
namespace {

using Dims64 = std::vector<int64_t>;
constexpr uint32_t kNoGroup = UINT32_MAX;
constexpr int kLookAhead = 12;
constexpr int64_t kLongestRow = int64_t{1} << 16;
constexpr size_t kMostOperands = 48;
constexpr size_t kFurthestLook = 1024;
constexpr int kMostSiblingsTried = 4;

Dims64 dims_of(const Instruction& instr) {
  return {instr.shape.dims().begin(), instr.shape.dims().end()};
}

Dims64 sorted_dimensions(const Instruction& reduce) {
  const Dims dims = reduce.as<DimensionsAttrs>().dimensions;
  Dims64 out(dims.begin(), dims.end());
  std::sort(out.begin(), out.end());
  return out;
}

// True if the op reads each element of its operands at most once, at an index that follows from the index of the
// result.
bool moves_once(Op op) {
  const OpInfo& info = op_info(op);
  return info.has(COLLET_OP_INDEXED) && info.has(COLLET_OP_MOVES) && op != Op::BROADCAST;
}

bool is_pointwise(const Instruction& instr) {
  return is_elementwise(instr.op) && instr.op != Op::MAP;
}
bool is_product(Op op) {
  return op == Op::DOT || op == Op::CONVOLUTION;
}

// True if `reduce`, whose operand has the shape `whole`, reduces the last dimensions only.
bool reduces_last(const Instruction& reduce, const Shape& whole) {
  const Dims dims = reduce.as<DimensionsAttrs>().dimensions;
  std::vector<bool> reduced(static_cast<size_t>(whole.rank()));
  for (int64_t d : dims) reduced[static_cast<size_t>(d)] = true;
  return std::is_sorted(reduced.begin(), reduced.end());
}

/// A group while it grows.
struct Group {
  std::vector<uint32_t> members;   // positions in the order, descending
  std::vector<uint32_t> operands;  // positions of what members read of others, ascending; once the group has grown
  bool has_product = false, has_reduce = false, moves = false;
  Dims64 whole, rows;  // with reductions: dimensions before and after the reduction
  Dims64 reduced;
  bool has_short_rows = false;
};

class Grouping {
 public:
  Grouping(const Module& module, CompId computation, const PassContext& context, const FusionLimits& limits,
           const std::vector<bool>& effects)
      : module_(module), context_(context), limits_(limits), order_(module[computation].order) {
    for (uint32_t i = 0; i < order_.size(); ++i) place_[index_of(order_[i])] = i;
    users_.resize(order_.size());
    for (uint32_t i = 0; i < order_.size(); ++i)
      for (InstrId o : at(i).operands) users_[place_.at(index_of(o))].push_back(i);
    // Instructions with effects must stay in their order.
    uint32_t last = kNoGroup;
    for (uint32_t i = 0; i < order_.size(); ++i) {
      if (at(i).extras)
        for (InstrId p : at(i).extras->control_predecessors) {
          awaited_.insert(index_of(p));
          users_[place_.at(index_of(p))].push_back(i);
        }
      if (!has_effect(module, at(i), effects)) continue;
      if (last != kNoGroup) users_[last].push_back(i);
      last = i;
    }
    root_ = place_.at(index_of(module[computation].root));
    group_.assign(order_.size(), kNoGroup);
  }

  std::vector<FusionGroup> run() {
    for (uint32_t i = static_cast<uint32_t>(order_.size()); i-- > 0;) {
      if (!may_fuse(i)) continue;
      if (!join_users(i)) start(i);
    }
    for (Group& group : groups_) find_operands(group);
    if (limits_.several_outputs) {
      join_producers();
      join_siblings();
    }
    std::vector<FusionGroup> out;
    for (Group& group : groups_) {
      if (!worth_it(group)) continue;
      FusionGroup fusion;
      fusion.kind = group.has_product ? FusionKind::OUTPUT : group.has_reduce ? FusionKind::INPUT : FusionKind::LOOP;
      std::sort(group.members.begin(), group.members.end());
      for (uint32_t i : group.members) fusion.members.push_back(order_[i]);
      out.push_back(std::move(fusion));
    }
    return out;
  }

 private:
  const Instruction& at(uint32_t i) const { return module_[order_[i]]; }

  bool may_fuse(uint32_t i) const {
    const Instruction& instr = at(i);
    if (!instr.shape.is_array() || instr.shape.has_dynamic() || instr.shape.element_count() == 0) return false;
    if (instr.extras && !instr.extras->control_predecessors.empty()) return false;
    if (awaited_.contains(index_of(order_[i]))) return false;
    if (has_side_effect(instr.op) || op_info(instr.op).op_class == OpClass::EXECUTOR) return false;
    for (InstrId o : instr.operands)
      if (!module_[o].shape.is_array() || module_[o].shape.has_dynamic()) return false;
    const bool reduce = instr.op == Op::REDUCE && instr.operands.size() == 2 && limits_.reductions;
    // A gather is left alone: its start indices would be read again for each element.
    const bool indexed = op_info(instr.op).has(COLLET_OP_INDEXED) && instr.op != Op::GATHER;
    const bool known = is_pointwise(instr) || indexed || reduce || (is_product(instr.op) && limits_.products);
    if (!known || (instr.op == Op::CONCATENATE && instr.operands.size() > 8)) return false;
    if (context_.claim && context_.claim(module_, order_[i]) != Claim::Take) return false;
    return !context_.fusible || context_.fusible(module_, order_[i]);
  }

  void start(uint32_t i) {
    // It is recomputed in each fusion that uses it, so it needs no group of its own.
    if (is_repeatable(module_, order_[i])) return;
    Group group;
    group.members = {i};
    note(group, i);
    group_[i] = static_cast<uint32_t>(groups_.size());
    groups_.push_back(std::move(group));
  }

  void note(Group& group, uint32_t i) {
    const Instruction& instr = at(i);
    group.has_product |= is_product(instr.op);
    group.moves |= moves_once(instr.op);
    if (instr.op == Op::REDUCE && !group.has_reduce) {
      group.has_reduce = true;
      group.whole = dims_of(module_[instr.operand(0)]);
      group.rows = dims_of(instr);
      group.reduced = sorted_dimensions(instr);
      group.has_short_rows = has_short_rows(instr);
    }
  }

  // True if the reduction is over the last dimensions, and a row of them can be held in local memory.
  bool has_short_rows(const Instruction& reduce) const {
    const Shape& whole = module_[reduce.operand(0)].shape;
    int64_t row = 1;
    for (int64_t d : reduce.as<DimensionsAttrs>().dimensions) row *= whole.dim(static_cast<int>(d));
    return reduces_last(reduce, whole) && row <= kLongestRow;
  }

  bool join_users(uint32_t i) {
    if (i == root_ || users_[i].empty()) return false;
    const uint32_t g = group_[users_[i][0]];
    if (g == kNoGroup) return false;
    for (uint32_t u : users_[i])
      if (group_[u] != g) return false;
    Group& group = groups_[g];
    if (group.members.size() >= limits_.most_members || !may_join(group, i)) return false;
    group.members.push_back(i);
    group_[i] = g;
    note(group, i);
    return true;
  }

  bool may_join(const Group& group, uint32_t i) {
    const Instruction& instr = at(i);
    if (is_product(instr.op)) return product_may_join(group, instr);
    for (uint32_t u : users_[i])
      if (!may_feed(group, i, at(u))) return false;
    if (instr.op == Op::REDUCE) return reduce_may_join(group, instr);
    if (group.has_reduce) return fits_rows(group, instr);
    if (group.has_product) return false;  // the operands of a product must be materialised, so no producer joins here
    return true;
  }

  // True if the producer at i may be computed inside the group for `user`, a member.
  bool may_feed(const Group& group, uint32_t i, const Instruction& user) {
    const Instruction& instr = at(i);
    if (is_pointwise(user)) return true;
    if (user.op == Op::REDUCE) return module_[user.operand(0)].name == instr.name && instr.op != Op::REDUCE;
    if (user.op == Op::BROADCAST) {
      // Each value is used many times. It can join only if the kernel can hold it: one value per row.
      if (instr.shape.rank() == 0 || !limits_.reductions || group.moves) return false;
      return is_row_broadcast(user) && leads_to_reduce(order_[i], dims_of(user), kLookAhead);
    }
    if (user.op == Op::DYNAMIC_SLICE) return user.operand(0) == order_[i] && operands_but_first_differ(user, order_[i]);
    if (user.op == Op::PAD) return user.operand(0) == order_[i] && user.operand(1) != order_[i];
    return moves_once(user.op) && !group.has_reduce && instr.op != Op::REDUCE;
  }
  static bool operands_but_first_differ(const Instruction& user, InstrId id) {
    return std::find(user.operands.begin() + 1, user.operands.end(), id) == user.operands.end();
  }

  static bool is_row_broadcast(const Instruction& broadcast) {
    const Dims d = broadcast.as<BroadcastAttrs>().dimensions;
    for (size_t k = 0; k < d.size(); ++k)
      if (d[k] != static_cast<int64_t>(k)) return false;
    return !d.empty() && static_cast<int64_t>(d.size()) < broadcast.shape.rank();
  }

  // True if `id` is computed from a reduction over the rows of `whole`, through at most `depth` ops on one value per
  // row.
  bool leads_to_reduce(InstrId id, const Dims64& whole, int depth) const {
    const Instruction& instr = module_[id];
    if (instr.op == Op::REDUCE)
      return instr.operands.size() == 2 && dims_of(module_[instr.operand(0)]) == whole &&
             reduces_last(instr, module_[instr.operand(0)].shape);
    if (depth == 0 || !is_pointwise(instr)) return false;
    return std::any_of(instr.operands.begin(), instr.operands.end(),
                       [&](InstrId o) { return leads_to_reduce(o, whole, depth - 1); });
  }

  bool product_may_join(const Group& group, const Instruction& product) const {
    if (group.has_product || group.has_reduce || group.moves) return false;
    const Dims64 dims = dims_of(product);
    return std::all_of(group.members.begin(), group.members.end(), [&](uint32_t m) {
      return dims_of(at(m)) == dims && (is_pointwise(at(m)) || at(m).op == Op::BROADCAST);
    });
  }

  bool reduce_may_join(const Group& group, const Instruction& reduce) const {
    if (group.has_product || group.moves) return false;
    Group next;
    next.whole = dims_of(module_[reduce.operand(0)]);
    next.rows = dims_of(reduce);
    next.reduced = sorted_dimensions(reduce);
    if (group.has_reduce && (group.whole != next.whole || group.reduced != next.reduced)) return false;
    for (uint32_t m : group.members) {
      if (!fits_rows(next, at(m))) return false;
      // A member of full size depends on the reduction: the rows must then be contiguous and short enough to be held in
      // local memory.
      if (at(m).op != Op::REDUCE && dims_of(at(m)) == next.whole && next.whole != next.rows && !has_short_rows(reduce))
        return false;
    }
    return true;
  }

  // In a group of rows every value is of full size or has one value per row.
  bool fits_rows(const Group& group, const Instruction& instr) const {
    const Dims64 dims = dims_of(instr);
    if (instr.op == Op::REDUCE)
      return dims_of(module_[instr.operand(0)]) == group.whole && sorted_dimensions(instr) == group.reduced;
    if (dims != group.whole && dims != group.rows) return false;
    return is_pointwise(instr) || instr.op == Op::BROADCAST || instr.op == Op::IOTA;
  }

  bool worth_it(const Group& group) const {
    size_t count = group.members.size();
    if (count == 0) return false;
    for (uint32_t m : group.members)
      for (InstrId o : at(m).operands)
        if (is_repeatable(module_, o) && !module_[o].shape.is_scalar() && !is_in(o, group_[m])) ++count;
    return count >= 2 && group.operands.size() <= kMostOperands;
  }

  bool is_in(InstrId id, uint32_t group) const { return group_[place_.at(index_of(id))] == group; }

  void find_operands(Group& group) const {
    for (uint32_t m : group.members)
      for (InstrId o : at(m).operands)
        if (const uint32_t place = place_.at(index_of(o)); group_[place] != group_[m]) group.operands.push_back(place);
    std::sort(group.operands.begin(), group.operands.end());
    group.operands.erase(std::unique(group.operands.begin(), group.operands.end()), group.operands.end());
  }

  // Returns the operands that one kernel of both groups would have.
  std::vector<uint32_t> operands_of(uint32_t a, uint32_t b) const {
    const std::vector<uint32_t>&x = groups_[a].operands, &y = groups_[b].operands;
    std::vector<uint32_t> all;
    all.reserve(x.size() + y.size());
    std::set_union(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(all));
    std::erase_if(all, [&](uint32_t place) { return group_[place] == a || group_[place] == b; });
    return all;
  }

  // ---- several outputs ----

  // Joins a group with one that reads its values, so that values with other users, too, are computed where they are first
  // used, and stored for the others.
  void join_producers() {
    // A group that has been joined with another may fit a third one, to which a reduction leads.
    for (uint32_t start = 0; start < groups_.size(); ++start)
      for (uint32_t g = start; g != kNoGroup;) g = join_with_users(g);
  }

  // Joins a group with the first one that reads its values and can be one kernel with it. Returns the joined group; kNoGroup if
  // there is none.
  uint32_t join_with_users(uint32_t g) {
    std::vector<uint32_t> users;
    for (uint32_t m : groups_[g].members) users.insert(users.end(), users_[m].begin(), users_[m].end());
    std::sort(users.begin(), users.end());
    uint32_t last = kNoGroup;
    int tried = 0;
    for (uint32_t u : users) {
      const uint32_t with = group_[u];
      if (with == kNoGroup || with == g || with == last) continue;
      if (++tried > kMostSiblingsTried) break;
      last = with;
      if (!may_join_users(g, with)) continue;
      merge(with, g);
      return with;
    }
    return kNoGroup;
  }

  // True if group `user`, which reads values of group `from`, can be one kernel with it.
  bool may_join_users(uint32_t from, uint32_t user) {
    const Group &x = groups_[from], &y = groups_[user];
    if (x.has_product || y.has_product || x.moves || y.moves) return false;
    if (x.members.size() + y.members.size() > limits_.most_members) return false;
    const Group& rows = x.has_reduce ? x : y;
    // What other rows than short ones are reduced to can be used at once, but not the rows again.
    if (rows.has_reduce && !rows.has_short_rows) {
      const auto is_reduced = [&](uint32_t m) { return dims_of(at(m)) == rows.rows; };
      if (&rows != &x || y.has_reduce || !std::ranges::all_of(y.members, is_reduced)) return false;
    }
    if (x.has_reduce && y.has_reduce && (x.whole != y.whole || x.reduced != y.reduced)) return false;
    if (!rows.has_reduce && domain(x) != domain(y)) return false;
    if (rows.has_reduce && !(x.has_reduce && y.has_reduce))
      for (uint32_t m : (x.has_reduce ? y : x).members)
        if (!fits_rows(rows, at(m))) return false;
    for (uint32_t m : x.members)
      for (uint32_t u : users_[m])
        if (group_[u] == user && !may_read(rows, at(m), at(u))) return false;
    return operands_of(from, user).size() <= kMostOperands && !reaches(from, user, true);
  }

  // True if `user`, in one kernel with `value`, reads of it what the same row has.
  bool may_read(const Group& rows, const Instruction& value, const Instruction& user) const {
    if (is_pointwise(user)) return true;
    if (user.op == Op::REDUCE) return module_[user.operand(0)].name == value.name && value.op != Op::REDUCE;
    return user.op == Op::BROADCAST && rows.has_reduce && is_row_broadcast(user) && dims_of(value) == rows.rows &&
           dims_of(user) == rows.whole;
  }

  void join_siblings() {
    // By array read and size of the group's result: a group that reads it.
    std::map<std::pair<uint32_t, Dims64>, uint32_t> readers;
    for (uint32_t g = 0; g < groups_.size(); ++g) {
      int tried = 0;
      for (size_t k = 0; k < groups_[g].members.size() && tried < kMostSiblingsTried; ++k) {
        const uint32_t m = groups_[g].members[k];
        bool joined = false;
        for (InstrId o : at(m).operands) {
          const uint32_t from = place_.at(index_of(o));
          if (group_[from] == g || module_[o].shape.rank() == 0) continue;
          const auto [it, fresh] = readers.try_emplace({from, domain(groups_[g])}, g);
          if (fresh || it->second == g || ++tried > kMostSiblingsTried) continue;
          if (siblings(it->second, g)) {
            merge(it->second, g);
            joined = true;
            break;
          }
        }
        if (joined) break;
      }
    }
  }

  Dims64 domain(const Group& group) const {
    return group.has_reduce ? group.whole : dims_of(at(group.members.front()));
  }

  bool siblings(uint32_t a, uint32_t b) {
    const Group &x = groups_[a], &y = groups_[b];
    if (x.members.empty() || y.members.empty() || x.has_product || y.has_product || x.moves || y.moves) return false;
    if (x.has_reduce != y.has_reduce || x.reduced != y.reduced || x.whole != y.whole) return false;
    if (x.members.size() + y.members.size() > limits_.most_members) return false;
    return operands_of(a, b).size() <= kMostOperands && !reaches(a, b) && !reaches(b, a);
  }

  // True if an instruction in `to` depends on one in `from`. Groups count as single nodes: an instruction that depends
  // on one member depends on all. `through_others`: only dependence through other groups counts.
  bool reaches(uint32_t from, uint32_t to, bool through_others = false) {
    ++round_;
    seen_.resize(order_.size());
    seen_groups_.resize(groups_.size());
    seen_groups_[from] = round_;
    const auto first_visit = [&](uint32_t i) { return std::exchange(seen_[i], round_) != round_; };
    std::vector<uint32_t> work(groups_[from].members);
    size_t budget = kFurthestLook;
    while (!work.empty()) {
      const uint32_t i = work.back();
      work.pop_back();
      for (uint32_t u : users_[i]) {
        if (--budget == 0) return true;  // the search was too long; assumes a dependence to be safe
        if (group_[u] == from || (through_others && group_[i] == from && group_[u] == to) || !first_visit(u)) continue;
        if (group_[u] == to) return true;
        work.push_back(u);
        if (group_[u] != kNoGroup && std::exchange(seen_groups_[group_[u]], round_) != round_)
          for (uint32_t m : groups_[group_[u]].members)
            if (first_visit(m)) work.push_back(m);
      }
    }
    return false;
  }

  void merge(uint32_t into, uint32_t from) {
    Group &to = groups_[into], &old = groups_[from];
    std::vector<uint32_t> operands = operands_of(into, from);
    for (uint32_t m : old.members) group_[m] = into;
    std::vector<uint32_t> members = std::move(to.members);
    members.insert(members.end(), old.members.begin(), old.members.end());
    if (!to.has_reduce) to = std::move(old);
    to.members = std::move(members);
    to.operands = std::move(operands);
    old.members.clear();
  }

  const Module& module_;
  const PassContext& context_;
  const FusionLimits& limits_;
  const std::vector<InstrId>& order_;
  std::unordered_map<uint32_t, uint32_t> place_;
  std::vector<std::vector<uint32_t>> users_;
  std::unordered_set<uint32_t> awaited_;  // control predecessors
  uint32_t root_ = 0;
  std::vector<uint32_t> group_;
  std::vector<Group> groups_;
  // The round of the search that has last visited a member or group, by its number.
  std::vector<uint32_t> seen_, seen_groups_;
  uint32_t round_ = 0;
};

}  // namespace

bool is_repeatable(const Module& module, InstrId id) {
  const Instruction& instr = module[id];
  if (!instr.shape.is_array() || instr.shape.has_dynamic()) return false;
  switch (instr.op) {
    case Op::CONSTANT:
      return instr.shape.element_count() == 1;
    case Op::IOTA:
      return true;
    case Op::BROADCAST:
      return instr.shape.element_count() >= 4 * module[instr.operand(0)].shape.element_count();
    default:
      return false;
  }
}

std::vector<FusionGroup> find_fusions(const Module& module, CompId computation, const PassContext& context,
                                      const FusionLimits& limits, const std::vector<bool>& effects) {
  return Grouping(module, computation, context, limits, effects).run();
}

}  // namespace collet::hlo
