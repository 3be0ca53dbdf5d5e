/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_PLANNER_HPP
#define COLLET_KERNEL_PLANNER_HPP

/** \file
 * Converts a program to a plan: a list of launches, loops and branches, and a place for every value. The SDK's schedule
 * is kept. The offsets that the SDK proposes are used if no live values overlap and the program has no control flow;
 * otherwise the planner assigns places by live ranges. Included by kernel_backend.hpp.
 *
 * The variables of a loop stay in place: a result of the body is written over the value that it replaces if nothing
 * reads that value any more. Otherwise the two exchange their memory after each iteration ("slots"), so that nothing is
 * copied.
 */

#include "kernel_plan.hpp"
#include "memory_planner.hpp"

namespace collet {
namespace kernel {
namespace detail {

/** Makes a Plan. An object is used once. */
class Planner {
 public:
  Planner(const collet_program* program, const KernelSelector& selector, uint64_t alignment)
      : p_(program),
        selector_(selector),
        alignment_(alignment),
        same_(program->values.count),
        owner_(program->values.count),
        result_(program->values.count, COLLET_NONE),
        over_(program->values.count) {
    plan_.places.resize(program->values.count);
    for (uint32_t i = 0; i < same_.size(); ++i) same_[i] = owner_[i] = i;
  }

  /** Makes the plan. Ops that no kernel takes are added to `rejected`; then the result is not a plan. */
  Plan make(std::vector<uint32_t>* rejected) {
    const collet_region* entry = collet_region_at(p_, 0);
    for (uint32_t i = 0; i < entry->arguments.count; ++i) {
      plan_.places[entry->arguments.first + i] = {Place::kArgument, i, 0};
    }
    lower(entry, rejected);
    if (!rejected->empty()) return {};
    measure_lives(entry);
    share_with_results(entry);
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      if (plan_.steps[s].kind == Step::kLoop) share_in_loop(s);
      if (plan_.steps[s].kind == Step::kBranch) share_in_branches(s);
    }
    place_values();
    copy_other_results(entry);
    place_immediates(entry);
    choose_forms(entry);
    for (FinalCopy& copy : plan_.final_copies) {
      if (copy.staged) copy.stage = take(bytes_of(copy.value));
    }
    plan_.scratch_offset = take(plan_.scratch_bytes);
    return std::move(plan_);
  }

 private:
  static constexpr size_t kNever = SIZE_MAX;
  struct LiveRange {
    size_t first = kNever;  // the step that writes the value
    size_t last = 0;        // the last step that reads the value
  };

  /** Reserves memory at the end of the workspace. */
  uint64_t take(uint64_t bytes) {
    const uint64_t offset = aligned(plan_.workspace_bytes, alignment_);
    if (bytes != 0) plan_.workspace_bytes = offset + bytes;
    return offset;
  }

  bool is_placed(uint32_t value) const { return plan_.places[value].kind != Place::kNowhere; }
  uint64_t bytes_of(uint32_t value) const { return collet_value_type(p_, value)->bytes; }
  uint32_t result_of(const collet_region* region, uint32_t i) const {
    return collet_ref_at(p_, region->results.first + i);
  }

  /** \name Steps
   * @{ */
  void lower(const collet_region* region, std::vector<uint32_t>* rejected) {
    for (uint32_t i = 0; i < region->ops.count; ++i) {
      const uint32_t id = region->ops.first + i;
      const Answer answer = selector_.ask(p_, id);
      const collet_op* op = collet_op_at(p_, id);
      if (!answer.taken) {
        rejected->push_back(id);
      } else if (answer.kernel) {
        add_step(answer.kernel->run_together ? Step::kCollective : Step::kKernel, answer.kernel, id);
      } else if (is_collective(op->opcode)) {
        add_step(Step::kCollective, nullptr, id);
      } else if (keeps_bytes(op->opcode)) {
        add_step(Step::kCopy, nullptr, id);
      } else if (op->opcode == COLLET_OP_CONSTANT) {
        add_constant(op);
      } else if (op->opcode == COLLET_OP_WHILE) {
        lower_loop(id, rejected);
      } else if (op->opcode == COLLET_OP_CONDITIONAL) {
        lower_conditional(id, rejected);
      } else if (op->opcode == COLLET_OP_FUSION || op->opcode == COLLET_OP_CALL) {
        lower_call(op, rejected);
      } else {
        add_step(Step::kScalar, nullptr, id);
      }
    }
  }

  void add_step(Step::Kind kind, const Kernel* kernel, uint32_t id) {
    const collet_op* op = collet_op_at(p_, id);
    const std::vector<Array> arrays = arrays_of(p_, op);
    Step step;
    step.kind = kind;
    step.kernel = kernel;
    step.op = id;
    for (uint32_t i = 0; i < op->operands.count; ++i) step.operands.push_back(same_[collet_operand(p_, op, i)]);
    uint64_t elements = 0;
    for (uint32_t i = 0; i < op->results.count; ++i) {
      step.results.push_back(op->results.first + i);
      elements += arrays[op->operands.count + i].elements;
    }
    if (elements == 0) return;  // nothing to write
    if (kernel && kernel->scratch) {
      plan_.scratch_bytes = std::max(plan_.scratch_bytes, kernel->scratch(Op(p_, op, arrays.data())));
    }
    if (kind == Step::kCollective) add_collective(op, arrays, kernel);
    for (const Array& array : arrays) plan_.traffic_bytes += array.bytes;
    if (kernel && kernel->cost_ns) plan_.estimated_ns += kernel->cost_ns(Op(p_, op, arrays.data()));
    if (kind != Step::kScalar) ++plan_.kernels;
    plan_.steps.push_back(std::move(step));
  }

  void add_collective(const collet_op* op, const std::vector<Array>& arrays, const Kernel* kernel) {
    CollectiveStep& out = plan_.collectives[plan_.steps.size()];
    out.spec = collective_of(p_, op);
    if (kernel) return;
    selector_.find_combiners(p_, op, arrays, &out.combiners);
    uint64_t members = 1;
    for (const std::vector<uint32_t>& group : out.spec.groups) members = std::max<uint64_t>(members, group.size());
    plan_.scratch_bytes = std::max(plan_.scratch_bytes, GroupRun::scratch_bytes(op, arrays, members, alignment_));
  }

  void add_constant(const collet_op* op) {
    collet_constant_attrs attributes;
    collet_read_attributes(p_, op, &attributes, sizeof attributes);
    const collet_constant* constant = collet_constant_at(p_, attributes.constant);
    const uint64_t offset = aligned(plan_.resident_bytes, alignment_);
    plan_.places[op->results.first] = {Place::kConstant, 0, offset};
    if (constant->bytes == 0) return;
    plan_.residents.push_back({offset, constant->bytes, collet_constant_data(p_, constant)});
    plan_.resident_bytes = offset + constant->bytes;
  }

  void lower_call(const collet_op* op, std::vector<uint32_t>* rejected) {
    const collet_region* region = collet_region_at(p_, op->regions.first);
    for (uint32_t i = 0; i < region->arguments.count; ++i) {
      same_[region->arguments.first + i] = same_[collet_operand(p_, op, i)];
    }
    lower(region, rejected);
    for (uint32_t i = 0; i < op->results.count; ++i) same_[op->results.first + i] = same_[result_of(region, i)];
  }

  size_t add_control(Step::Kind kind, uint32_t op) {
    Step step;
    step.kind = kind;
    step.op = op;
    plan_.steps.push_back(std::move(step));
    return plan_.steps.size() - 1;
  }

  void transfer(size_t step, uint32_t to, uint32_t from) {
    if (to != from && bytes_of(to) != 0) plan_.steps[step].transfers.push_back({to, from});
  }

  /** Lowers a loop. A value that the body returns unchanged is the operand itself; all others are the loop's variables. */
  void lower_loop(uint32_t id, std::vector<uint32_t>* rejected) {
    has_control_ = true;
    const collet_op* op = collet_op_at(p_, id);
    const collet_region* condition = collet_region_at(p_, op->regions.first);
    const collet_region* body = collet_region_at(p_, op->regions.first + 1);
    collet_while_attrs attributes;
    collet_read_attributes(p_, op, &attributes, sizeof attributes);
    const size_t loop = add_control(Step::kLoop, id);
    plan_.steps[loop].trips = attributes.trip_count_plus_one - 1;
    std::vector<uint32_t> kept;
    for (uint32_t i = 0; i < op->operands.count; ++i) {
      const uint32_t operand = same_[collet_operand(p_, op, i)];
      uint32_t value = op->results.first + i;
      if (origin(body, result_of(body, i)) == body->arguments.first + i) {
        kept.push_back(operand);
        same_[value] = operand;
        value = operand;
      } else if (bytes_of(value) != 0) {
        plan_.steps[loop].results.push_back(value);
        transfer(loop, value, operand);
      }
      same_[condition->arguments.first + i] = same_[body->arguments.first + i] = value;
    }
    if (attributes.trip_count_plus_one == 0) lower(condition, rejected);
    const size_t test = add_control(Step::kTest, id);
    if (attributes.trip_count_plus_one == 0) plan_.steps[test].operands.push_back(same_[result_of(condition, 0)]);
    plan_.steps[loop].parts.push_back(test + 1);
    lower(body, rejected);
    const size_t repeat = add_control(Step::kRepeat, id);
    plan_.steps[repeat].operands = kept;  // read again in the next iteration
    for (const uint32_t value : plan_.steps[loop].results) {
      transfer(repeat, value, same_[result_of(body, value - op->results.first)]);
    }
    plan_.steps[loop].end = repeat + 1;
  }

  void lower_conditional(uint32_t id, std::vector<uint32_t>* rejected) {
    has_control_ = true;
    const collet_op* op = collet_op_at(p_, id);
    const size_t branch = add_control(Step::kBranch, id);
    plan_.steps[branch].operands.push_back(same_[collet_operand(p_, op, 0)]);
    for (uint32_t i = 0; i < op->results.count; ++i) {
      if (bytes_of(op->results.first + i) != 0) plan_.steps[branch].results.push_back(op->results.first + i);
    }
    uint32_t next = 1;
    for (uint32_t r = 0; r < op->regions.count; ++r) {
      const collet_region* region = collet_region_at(p_, op->regions.first + r);
      plan_.steps[branch].parts.push_back(plan_.steps.size());
      for (uint32_t i = 0; i < region->arguments.count; ++i) {
        same_[region->arguments.first + i] = same_[collet_operand(p_, op, next++)];
      }
      lower(region, rejected);
      const size_t join = add_control(Step::kJoin, id);
      for (uint32_t i = 0; i < op->results.count; ++i) {
        transfer(join, op->results.first + i, same_[result_of(region, i)]);
      }
    }
    plan_.steps[branch].end = plan_.steps.size();
  }

  /** Returns the value that `value` is another name of: through calls, and through loops that do not change it. */
  uint32_t origin(const collet_region* region, uint32_t value) const {
    const collet_value* what = collet_value_at(p_, value);
    const uint32_t first = region->arguments.first;
    if (value >= first && value - first < region->arguments.count) return value;
    const collet_op* op = collet_op_at(p_, what->definition);
    const bool loop = op->opcode == COLLET_OP_WHILE;
    if (!loop && (op->opcode != COLLET_OP_CALL || !is_control_flow(p_, op))) return value;
    const collet_region* inner = collet_region_at(p_, op->regions.first + (loop ? 1 : 0));
    const uint32_t from = origin(inner, result_of(inner, what->index)), begin = inner->arguments.first;
    if (from < begin || from - begin >= inner->arguments.count) return value;
    if (loop && from - begin != what->index) return value;
    return origin(region, collet_operand(p_, op, from - begin));
  }
  /** @} */

  /** \name Live ranges
   * Steps are numbered through all regions. A value of a region is read only in that region, except for the variables of
   * a loop.
   * @{ */
  void measure_lives(const collet_region* entry) {
    const size_t end = plan_.steps.size();
    live_ranges_.resize(p_->values.count);
    reads_.resize(p_->values.count);
    for (size_t s = 0; s < end; ++s) {
      const Step& step = plan_.steps[s];
      for (uint32_t value : step.operands) reads_[value].push_back(s);
      for (const Transfer& one : step.transfers) reads_[one.from].push_back(s);
      for (uint32_t value : step.results) live_ranges_[value] = {s, std::max(s + 1, step.end) - 1};
    }
    for (uint32_t r = 0; r < entry->results.count; ++r) reads_[same_[result_of(entry, r)]].push_back(end);
    for (uint32_t value = 0; value < live_ranges_.size(); ++value) {
      if (!reads_[value].empty()) live_ranges_[value].last = std::max(live_ranges_[value].last, reads_[value].back());
    }
  }

  /** Returns how often steps [begin, end) read `value`. */
  size_t reads(uint32_t value, size_t begin, size_t end) const {
    const std::vector<size_t>& all = reads_[value];
    return static_cast<size_t>(std::lower_bound(all.begin(), all.end(), end) -
                               std::lower_bound(all.begin(), all.end(), begin));
  }

  /** True if one of the steps [begin, end) defines `value`. */
  bool is_made(uint32_t value, size_t begin, size_t end) const {
    return live_ranges_[value].first != kNever && live_ranges_[value].first >= begin && live_ranges_[value].first < end;
  }

  /** True if `step` may write over `value`, which it reads, when both start at the same address and have the same size. */
  bool may_overwrite(const Step& step, uint32_t value) const {
    if (!step.is_launch() || step.kind == Step::kCollective) return false;
    const uint32_t opcode = collet_op_at(p_, step.op)->opcode;
    if (!step.kernel || is_elementwise(opcode)) return bytes_of(value) == bytes_of(step.results[0]);
    return opcode == COLLET_OP_DYNAMIC_UPDATE_SLICE && step.operands[0] == value &&
           std::count(step.operands.begin(), step.operands.end(), value) == 1;
  }

  static uint32_t source_of(const Step& step, uint32_t to) {
    for (const Transfer& one : step.transfers) {
      if (one.to == to) return one.from;
    }
    return to;
  }

  /** True if `value` may be written to the memory of `old`, considering the readers of `old` before step `end`. */
  bool fits(uint32_t value, uint32_t old, size_t end) const {
    const size_t at = live_ranges_[value].first;
    const Step& step = plan_.steps[at];
    if (reads(old, std::max(at + 1, step.end), end) != 0) return false;
    if (step.is_launch()) return reads(old, at, at + 1) == 0 || may_overwrite(step, old);
    if (step.kind == Step::kLoop) {
      if (reads(old, at + 1, step.end) != 0) return false;
      const size_t count = reads(old, at, at + 1);
      return count == 0 || (count == 1 && source_of(step, value) == old);
    }
    for (size_t b = 0; b < step.parts.size(); ++b) {
      const size_t begin = step.parts[b], join = join_of(step, b);
      const uint32_t from = source_of(plan_.steps[join], value);
      if (from == old) continue;
      const bool good = is_made(from, begin, join) ? fits(from, old, join + 1) : reads(old, join, join + 1) == 0;
      if (!good) return false;
    }
    return true;
  }

  static size_t join_of(const Step& branch, size_t part) {
    return (part + 1 < branch.parts.size() ? branch.parts[part + 1] : branch.end) - 1;
  }
  /** @} */

  /** \name Shared memory
   * Values that use the same memory one after another have the same owner: the value whose place in memory they all have.
   * @{ */
  bool is_free(uint32_t value) const { return owner_[value] == value && result_[value] == COLLET_NONE; }

  /** Returns a value, made in step `begin` or later, over which `value` may be written; COLLET_NONE if there is none. */
  uint32_t forerunner(uint32_t value, size_t begin) const {
    const size_t at = live_ranges_[value].first;
    const Step& step = plan_.steps[at];
    const auto dies_here = [&](uint32_t operand) {
      return operand != value && is_free(operand) && !is_cycled(operand) && is_made(operand, begin, at) &&
             reads(operand, at, at + 1) == reads(operand, at, kNever) && bytes_of(operand) == bytes_of(value);
    };
    if (step.kind == Step::kLoop) {
      const uint32_t from = source_of(step, value);
      return from != value && dies_here(from) && reads(from, at, at + 1) == 1 ? from : COLLET_NONE;
    }
    for (uint32_t operand : step.operands) {
      if (may_overwrite(step, operand) && dies_here(operand)) return operand;
    }
    return COLLET_NONE;
  }

  /** Gives `value`, and the values over which it is written, the owner `owner`, which the values `old` used before. */
  bool share(uint32_t value, uint32_t owner, const std::vector<uint32_t>& old, size_t begin, size_t end) {
    std::vector<uint32_t> chain = {value};
    while (has_control_ && (chain.push_back(forerunner(chain.back(), begin)), chain.back() != COLLET_NONE)) {
    }
    if (chain.back() == COLLET_NONE) chain.pop_back();
    for (; !chain.empty(); chain.pop_back()) {
      const bool good = std::all_of(old.begin(), old.end(), [&](uint32_t o) { return fits(chain.back(), o, end); });
      if (!good) continue;
      for (size_t i = 0; i < chain.size(); ++i) {
        owner_[chain[i]] = owner;
        over_[chain[i]] = i + 1 < chain.size() ? std::vector<uint32_t>{chain[i + 1]} : old;
      }
      return true;
    }
    return false;
  }

  /** Lets values be computed in the buffers of results. If a result may alias an argument, it is written after the last read of it. */
  void share_with_results(const collet_region* entry) {
    for (uint32_t r = 0; r < entry->results.count; ++r) {
      const uint32_t value = same_[result_of(entry, r)];
      if (live_ranges_[value].first == kNever || is_placed(value) || !is_free(value)) continue;
      std::vector<uint32_t> old;
      for (uint32_t i = 0; i < p_->aliases.count; ++i) {
        const collet_alias* alias = collet_alias_at(p_, i);
        if (alias->result == r) old.push_back(entry->arguments.first + alias->argument);
      }
      if (share(value, value, old, 0, plan_.steps.size() + 1)) result_[value] = r;
    }
  }

  bool is_cycled(uint32_t value) const { return group_.count(owner_[value]) != 0; }

  void share_in_loop(size_t loop) {
    const size_t begin = plan_.steps[loop].parts[0], repeat = plan_.steps[loop].end - 1;
    const std::vector<Transfer> all = plan_.steps[repeat].transfers;
    std::map<uint32_t, uint32_t> next;   // the memory of a variable goes to the result that replaces it
    std::map<uint32_t, uint32_t> taken;  // the inverse of `next`
    std::vector<Transfer> rest;
    for (const Transfer& one : all) {
      if (is_made(one.from, begin, repeat) && is_free(one.from) && !is_cycled(one.from) &&
          share(one.from, owner_[one.to], {one.to}, begin, repeat + 1)) {
        taken[one.from] = one.to;
        continue;
      }
      rest.push_back(one);
    }
    const auto is_replaced = [&](uint32_t value) {
      return std::any_of(rest.begin(), rest.end(), [&](const Transfer& one) { return one.to == value; });
    };
    for (const Transfer& one : rest) {
      const bool made = is_made(one.from, begin, repeat) && is_free(one.from);
      if (taken.count(one.from) || !(made || is_replaced(one.from))) continue;
      next[one.to] = one.from;
      taken[one.from] = one.to;
    }
    add_cycles(repeat, next, taken);
    // The remaining values are copied, from where they are after the exchanges.
    for (const Transfer& one : rest) {
      if (next.count(one.to)) continue;
      const auto moved = taken.find(one.from);
      plan_.steps[repeat].copies.push_back({one.to, moved != taken.end() ? moved->second : one.from});
    }
  }

  void add_cycles(size_t repeat, const std::map<uint32_t, uint32_t>& next, const std::map<uint32_t, uint32_t>& taken) {
    std::map<uint32_t, bool> done;
    for (const bool closed : {false, true}) {
      for (const auto& link : next) {
        if (done[link.first] || (!closed && taken.count(link.first))) continue;
        std::vector<uint32_t> cycle;
        uint32_t at = link.first;
        for (; !done[at]; at = next.at(at)) {
          done[at] = true;
          cycle.push_back(owner_[at]);
          if (!next.count(at)) break;
        }
        for (uint32_t owner : cycle) join_groups(owner, cycle[0]);
        // Owners at this time; they are replaced by slots later.
        plan_.steps[repeat].cycles.push_back(std::move(cycle));
      }
    }
  }

  uint32_t group_of(uint32_t owner) {
    uint32_t at = owner;
    while (group_.count(at) && group_[at] != at) at = group_[at];
    return at;
  }
  void join_groups(uint32_t a, uint32_t b) {
    group_.emplace(a, a);
    group_.emplace(b, b);
    group_[group_of(a)] = group_of(b);
  }

  void share_in_branches(size_t branch) {
    for (size_t b = 0; b < plan_.steps[branch].parts.size(); ++b) {
      const size_t begin = plan_.steps[branch].parts[b], join = join_of(plan_.steps[branch], b);
      const std::vector<Transfer> all = plan_.steps[join].transfers;
      for (const Transfer& one : all) {
        const bool shared = is_made(one.from, begin, join) && is_free(one.from) && !is_cycled(one.from) &&
                            share(one.from, owner_[one.to], over_[one.to], begin, join + 1);
        if (!shared) plan_.steps[join].copies.push_back(one);
      }
    }
  }
  /** @} */

  /** \name Places
   * @{ */
  void place_values() {
    std::vector<uint32_t> values, owners;
    for (const Step& step : plan_.steps) {
      for (uint32_t value : step.results) {
        if (bytes_of(value) == 0 || is_placed(value)) continue;
        values.push_back(value);
        if (owner_[value] == value) owners.push_back(value);
      }
    }
    for (uint32_t value : values) extend(owner_[value], live_ranges_[value]);
    extend_groups(owners);
    std::vector<uint32_t> advised, others;
    for (uint32_t owner : owners) {
      if (result_[owner] != COLLET_NONE) {
        plan_.places[owner] = {Place::kResult, result_[owner], 0};
      } else {
        (has_control_ || collet_value_at(p_, owner)->offset == COLLET_NONE64 ? others : advised).push_back(owner);
      }
    }
    place_in_workspace(std::move(advised), std::move(others));
    make_slots(owners);
    for (uint32_t value : values) plan_.places[value] = plan_.places[owner_[value]];
  }

  void extend(uint32_t owner, LiveRange life) {
    live_ranges_[owner].first = std::min(live_ranges_[owner].first, life.first);
    live_ranges_[owner].last = std::max(live_ranges_[owner].last, life.last);
  }

  /** Owners that exchange their memory in a loop all stay live as long as any of them. If two of a group are results of
   * the program, each would have to be copied over the other at the end, so none of them gets the memory of a result. */
  void extend_groups(const std::vector<uint32_t>& owners) {
    std::map<uint32_t, LiveRange> ranges;
    std::map<uint32_t, int> results;
    for (uint32_t owner : owners) {
      if (!group_.count(owner)) continue;
      const uint32_t group = group_of(owner);
      LiveRange& all = ranges[group];
      all.first = std::min(all.first, live_ranges_[owner].first);
      all.last = std::max(all.last, live_ranges_[owner].last);
      if (live_ranges_[owner].last == plan_.steps.size()) ++results[group];
    }
    for (uint32_t owner : owners) {
      if (!group_.count(owner)) continue;
      extend(owner, ranges[group_of(owner)]);
      if (results[group_of(owner)] > 1) result_[owner] = COLLET_NONE;
    }
  }

  void make_slots(const std::vector<uint32_t>& owners) {
    std::map<uint32_t, uint32_t> slots;
    for (uint32_t owner : owners) {
      if (!group_.count(owner)) continue;
      slots[owner] = static_cast<uint32_t>(plan_.slots.size());
      plan_.slots.push_back(plan_.places[owner]);
      plan_.places[owner] = {Place::kSlot, slots[owner], 0};
    }
    for (Step& step : plan_.steps) {
      for (std::vector<uint32_t>& cycle : step.cycles) {
        for (uint32_t& owner : cycle) owner = slots.at(owner);
      }
    }
  }

  /** Uses the offsets that the SDK proposes if they are valid; otherwise assigns offsets by live ranges. */
  void place_in_workspace(std::vector<uint32_t> advised, std::vector<uint32_t> others) {
    if (advice_holds(advised)) {
      for (uint32_t value : advised) {
        plan_.places[value] = {Place::kWorkspace, 0, collet_value_at(p_, value)->offset};
      }
      plan_.workspace_bytes = advised.empty() ? 0 : p_->arena_bytes;
    } else {
      others.insert(others.end(), advised.begin(), advised.end());
    }
    std::sort(others.begin(), others.end(),
              [&](uint32_t a, uint32_t b) { return live_ranges_[a].first < live_ranges_[b].first; });
    place_by_lives(others);
  }

  /** True if no two values that are live at the same time overlap, except where a step may write over a value that it
   * reads. */
  bool advice_holds(const std::vector<uint32_t>& values) const {
    if (p_->arena_alignment != 0 && alignment_ % p_->arena_alignment != 0 && p_->arena_alignment % alignment_ != 0) {
      return false;
    }
    std::vector<uint32_t> live;
    for (uint32_t value : values) {
      const size_t now = live_ranges_[value].first;
      const uint64_t begin = collet_value_at(p_, value)->offset, bytes = bytes_of(value);
      if (begin % alignment_ != 0 || begin > p_->arena_bytes || bytes > p_->arena_bytes - begin) return false;
      live.erase(
          std::remove_if(live.begin(), live.end(), [&](uint32_t other) { return live_ranges_[other].last < now; }),
          live.end());
      for (uint32_t other : live) {
        const uint64_t other_begin = collet_value_at(p_, other)->offset;
        if (begin >= other_begin + bytes_of(other) || other_begin >= begin + bytes) continue;
        const Step& step = plan_.steps[now];
        const bool reads = std::find(step.operands.begin(), step.operands.end(), other) != step.operands.end();
        const bool dies = live_ranges_[other].last == now || !step.kernel;
        if (!reads || !dies || begin != other_begin || !may_overwrite(step, other)) return false;
      }
      live.push_back(value);
    }
    return true;
  }

  /** Assigns offsets after the used part of the workspace. */
  void place_by_lives(const std::vector<uint32_t>& values) {
    const uint64_t base = aligned(plan_.workspace_bytes, alignment_);
    std::vector<memory::PlacedInterval> intervals;
    for (const uint32_t value : values) {
      const LiveRange& life = live_ranges_[value];
      intervals.push_back({static_cast<int64_t>(life.first), static_cast<int64_t>(life.last), bytes_of(value), 0});
    }
    memory::place_intervals(intervals, static_cast<uint32_t>(alignment_));
    for (size_t i = 0; i < values.size(); ++i) {
      const uint64_t begin = base + intervals[i].offset;
      plan_.places[values[i]] = {Place::kWorkspace, 0, begin};
      plan_.workspace_bytes = std::max(plan_.workspace_bytes, begin + intervals[i].bytes);
    }
  }

  /** Adds final copies for results that no step writes to their buffers. */
  void copy_other_results(const collet_region* entry) {
    for (uint32_t r = 0; r < entry->results.count; ++r) {
      const uint32_t value = same_[result_of(entry, r)];
      plan_.results.push_back(value);
      if (bytes_of(value) == 0 || (plan_.places[value] == Place{Place::kResult, r, 0})) continue;
      const Place& place = plan_.places[value];
      FinalCopy copy{value, r};
      copy.staged = place.kind == Place::kArgument && is_aliased_elsewhere(place.index, r);
      plan_.final_copies.push_back(copy);
    }
  }

  bool is_aliased_elsewhere(uint32_t argument, uint32_t result) const {
    for (uint32_t i = 0; i < p_->aliases.count; ++i) {
      const collet_alias* alias = collet_alias_at(p_, i);
      if (alias->argument == argument && alias->result != result) return true;
    }
    return false;
  }

  void place_immediates(const collet_region* entry) {
    for (uint32_t i = 0; i < entry->arguments.count; ++i) {
      const uint32_t value = entry->arguments.first + i;
      if ((collet_value_at(p_, value)->flags & COLLET_VALUE_SCALAR) == 0) continue;
      plan_.immediates.emplace_back(i, take(collet_value_type(p_, value)->bytes));
    }
  }

  bool is_aliased(uint32_t argument) const {
    for (uint32_t i = 0; i < p_->aliases.count; ++i) {
      if (collet_alias_at(p_, i)->argument == argument) return true;
    }
    return false;
  }
  bool is_result_aliased(uint32_t result) const {
    for (uint32_t i = 0; i < p_->aliases.count; ++i) {
      if (collet_alias_at(p_, i)->result == result) return true;
    }
    return false;
  }

  /** Chooses packed forms and layouts for arguments and results that only one kernel reads or writes. */
  void choose_forms(const collet_region* entry) {
    std::vector<uint32_t> uses(p_->values.count, 0);
    for (const Step& step : plan_.steps) {
      for (uint32_t value : step.operands) uses[value] += step.kind == Step::kRepeat ? 0 : 1;
      for (const Transfer& one : step.transfers) ++uses[one.from];
    }
    for (uint32_t r = 0; r < entry->results.count; ++r) ++uses[same_[collet_ref_at(p_, entry->results.first + r)]];
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      if (!step.kernel || (!step.kernel->packing.bytes && !step.kernel->layout)) continue;
      const collet_op* op = collet_op_at(p_, step.op);
      const std::vector<Array> arrays = arrays_of(p_, op);
      const Op view(p_, op, arrays.data());
      if (step.kernel->packing.bytes) choose_packing(s, view, uses);
      if (step.kernel->layout) choose_layouts(entry, step, view, uses);
    }
  }

  void choose_packing(size_t s, const Op& view, const std::vector<uint32_t>& uses) {
    const Step& step = plan_.steps[s];
    const Packing& packing = step.kernel->packing;
    if (packing.operand >= step.operands.size()) {
      if (packing.bytes(view) == 0) return;
      throw Error(COLLET_FAILED_PRECONDITION, selector_.row_name(step.kernel) + ": packing.operand is " +
                                                  std::to_string(packing.operand) + ", and '" + view.name() + "' has " +
                                                  std::to_string(step.operands.size()) + " operands");
    }
    const uint32_t value = step.operands[packing.operand];
    const Place& place = plan_.places[value];
    const bool argument = place.kind == Place::kArgument && uses[value] == 1 && !is_aliased(place.index) &&
                          (collet_value_at(p_, value)->flags & COLLET_VALUE_SCALAR) == 0;
    if (!argument && place.kind != Place::kConstant) return;
    const uint64_t bytes = packing.bytes(view);
    if (bytes != 0) plan_.packed.push_back({s, argument ? place.index : COLLET_NONE, bytes});
  }

  void choose_layouts(const collet_region* entry, const Step& step, const Op& view, const std::vector<uint32_t>& uses) {
    const auto set = [&](std::vector<collet_layout>* layouts, uint32_t count, uint32_t at, uint32_t index) {
      collet_layout layout{};
      step.kernel->layout(view, index, &layout);
      if (layout.bytes == 0) return;
      layouts->resize(count);
      (*layouts)[at] = layout;
    };
    for (uint32_t i = 0; i < step.operands.size(); ++i) {
      const uint32_t value = step.operands[i];
      const Place& place = plan_.places[value];
      if (place.kind != Place::kArgument || uses[value] != 1 || is_aliased(place.index) || view.operand(i).bytes == 0)
        continue;
      if ((collet_value_at(p_, value)->flags & (COLLET_VALUE_SCALAR | COLLET_VALUE_CONSTANT)) != 0) continue;
      set(&plan_.argument_layouts, entry->arguments.count, place.index, i);
    }
    for (uint32_t i = 0; i < step.results.size(); ++i) {
      const Place& place = plan_.places[step.results[i]];
      if (place.kind != Place::kResult || uses[step.results[i]] != 1 || is_result_aliased(place.index) ||
          view.result(i).bytes == 0 || std::count(plan_.places.begin(), plan_.places.end(), place) != 1)
        continue;
      set(&plan_.result_layouts, entry->results.count, place.index, view.operand_count() + i);
    }
  }

  /** @} */

  const collet_program* p_;
  const KernelSelector& selector_;
  uint64_t alignment_;
  bool has_control_ = false;
  std::vector<uint32_t> same_;               // by value: the value of which it is another name
  std::vector<uint32_t> owner_;              // by value: the value whose memory it uses
  std::vector<uint32_t> result_;             // by owner: the result of the program whose memory it uses
  std::vector<std::vector<uint32_t>> over_;  // by value: the values over which it is written
  std::map<uint32_t, uint32_t> group_;       // union-find forest of the owners that exchange their memory
  std::vector<LiveRange> live_ranges_;
  std::vector<std::vector<size_t>> reads_;  // by value: the steps that read it, in order
  Plan plan_;
};

}  // namespace detail
}  // namespace kernel
}  // namespace collet

#endif
