// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>

#include "sdk/runtime/plan/overlap.h"
#include "sdk/runtime/plan/plan.h"
#include "sdk/runtime/plan/updates.h"
#include "sdk/runtime/run/collective.h"

namespace collet::runtime {
namespace {

using hlo::CompId;
using hlo::InstrId;
using hlo::Instruction;
using hlo::Leaf;
using hlo::Module;
using hlo::Op;

bool hands_through(const Step& step) {
  return step.kind == Step::Kind::While || step.kind == Step::Kind::Conditional || step.kind == Step::Kind::Call;
}

class Lowerer {
 public:
  Lowerer(const Module& module, const Partition& partition, hlo::ContentIds& ids)
      : m_(module), partition_(partition), ids_(ids) {}

  Expected<Lowered> run() {
    const CompId entry = m_.entry();
    const std::vector<Side> on_device(parameter_leaves(entry).size(), Side::Device);
    const std::vector<Side> results(hlo::leaves_of(m_, m_[entry].root).size(), Side::Device);
    COLLET_TRY(sequence(entry, on_device, results, true).status());
    out_.plan.cost_ns = partition_.computations.at(entry).cost_ns;
    return std::move(out_);
  }

 private:
  struct Key {
    Leaf leaf;
    Side side;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& k) const { return hlo::LeafHash()(k.leaf) * 2 + static_cast<size_t>(k.side); }
  };
  using Slots = std::unordered_map<Key, uint32_t, KeyHash>;

  // A sequence that is being built.
  struct Frame {
    Sequence sequence;
    Slots slots;
  };

  std::vector<Leaf> parameter_leaves(CompId c) const {
    std::vector<Leaf> out;
    for (InstrId p : m_[c].parameters) {
      const auto n = static_cast<uint32_t>(m_[p].shape.leaf_count());
      for (uint32_t i = 0; i < n; ++i) out.push_back({p, i});
    }
    return out;
  }

  uint32_t add_slot(Frame& f, Side side, uint64_t bytes) {
    f.sequence.slots.push_back({side, bytes});
    return static_cast<uint32_t>(f.sequence.slots.size() - 1);
  }

  // Returns the slot that has `leaf` on `side`; adds a copy or upload if necessary.
  Expected<uint32_t> place(Frame& f, Leaf leaf, Side side) {
    if (const auto it = f.slots.find({leaf, side}); it != f.slots.end()) return it->second;
    const uint64_t bytes = leaf_bytes(m_, leaf);
    const Instruction& instr = m_[leaf.instr];
    Step step;
    if (instr.op == Op::CONSTANT) {
      step.kind = Step::Kind::Constant;
      step.unit = constant(instr, side);
    } else {
      const Side other = side == Side::Device ? Side::Fallback : Side::Device;
      const auto it = f.slots.find({leaf, other});
      if (it == f.slots.end())
        return internal_error("plan: '" + std::string(instr.name) + "' is needed before it is there");
      step.kind = Step::Kind::Copy;
      step.in = {it->second};
    }
    const uint32_t slot = add_slot(f, side, bytes);
    step.out = {slot};
    step.instr = leaf.instr;
    f.slots[{leaf, side}] = slot;
    f.sequence.steps.push_back(std::move(step));
    return slot;
  }

  uint32_t constant(const Instruction& instr, Side side) {
    const hlo::Literal& value = m_.literal(instr);
    const hlo::ContentId id = ids_.of(value);
    auto& all = out_.plan.constants;
    for (uint32_t i = 0; i < all.size(); ++i)
      if (all[i].side == side && all[i].id == id && all[i].value.byte_size() == value.byte_size()) return i;
    all.push_back({side, value, id, {}});
    return static_cast<uint32_t>(all.size() - 1);
  }

  // Returns the side on which a leaf currently is; `otherwise` for a constant, which can be put on either side.
  Side side_of(const Frame& f, Leaf leaf, Side otherwise) const {
    if (f.slots.contains({leaf, otherwise})) return otherwise;
    const Side other = otherwise == Side::Device ? Side::Fallback : Side::Device;
    return f.slots.contains({leaf, other}) ? other : otherwise;
  }

  Expected<uint32_t> sequence(CompId c, const std::vector<Side>& arguments, const std::vector<Side>& results,
                              bool entry) {
    const auto number = static_cast<uint32_t>(out_.plan.sequences.size());
    out_.plan.sequences.emplace_back();
    Frame f;
    f.sequence.name = std::string(m_[c].name);
    const std::vector<Leaf> parameters = parameter_leaves(c);
    for (size_t i = 0; i < parameters.size(); ++i) {
      const uint32_t slot = add_slot(f, arguments[i], leaf_bytes(m_, parameters[i]));
      f.slots[{parameters[i], arguments[i]}] = slot;
      f.sequence.arguments.push_back(slot);
    }
    for (const ClusterPlan& cluster : partition_.computations.at(c).clusters) {
      if (cluster.side == Side::Host)
        COLLET_TRY(host_step(f, cluster));
      else
        COLLET_TRY(launch(f, c, cluster));
    }
    const std::vector<Leaf> leaves = hlo::leaves_of(m_, m_[c].root);
    for (size_t i = 0; i < leaves.size(); ++i) {
      COLLET_ASSIGN(const uint32_t slot, place(f, leaves[i], results[i]));
      f.sequence.results.push_back(slot);
    }
    if (entry) own_results(f, leaves);
    find_last_uses(f.sequence);
    find_overlaps(f.sequence);
    out_.plan.sequences[number] = std::move(f.sequence);
    return number;
  }

  // Gives each of the entry's results memory of its own: a slot that a launch on the device, or a copy to it, writes
  // for this result only. All other results are copied.
  void own_results(Frame& f, const std::vector<Leaf>& leaves) {
    std::vector<bool> own(f.sequence.slots.size());
    for (const Step& s : f.sequence.steps)
      if (s.kind == Step::Kind::Launch || s.kind == Step::Kind::Copy || s.kind == Step::Kind::Collective ||
          s.kind == Step::Kind::HostCall)
        for (const uint32_t slot : s.out) own[slot] = true;
    for (size_t i = 0; i < leaves.size(); ++i) {
      uint32_t& slot = f.sequence.results[i];
      if (own[slot]) {
        own[slot] = false;  // from now on the slot is used
        continue;
      }
      Step copy;
      copy.kind = Step::Kind::Copy;
      copy.instr = leaves[i].instr;
      copy.in = {slot};
      slot = add_slot(f, Side::Device, f.sequence.slots[slot].bytes);
      copy.out = {slot};
      f.sequence.steps.push_back(std::move(copy));
    }
  }

  void find_last_uses(Sequence& s) const {
    constexpr size_t kNever = SIZE_MAX;
    std::vector<size_t> last(s.slots.size(), kNever);
    for (size_t i = 0; i < s.steps.size(); ++i) {
      for (uint32_t slot : s.steps[i].in) last[slot] = i;
      for (uint32_t slot : s.steps[i].out) last[slot] = i;
    }
    for (uint32_t slot : s.results) last[slot] = kNever;
    for (uint32_t slot = 0; slot < last.size(); ++slot)
      if (last[slot] != kNever) s.steps[last[slot]].dead.push_back(slot);
    std::vector<uint32_t> uses(s.slots.size());
    for (size_t i = 0; i < s.steps.size(); ++i) {
      Step& step = s.steps[i];
      step.is_last_use.resize(step.in.size());
      size_t first = 0;
      const auto group = [&](size_t count) {  // finds the last uses among inputs that are passed together
        const std::span<const uint32_t> in = std::span(step.in).subspan(first, count);
        for (uint32_t slot : in) ++uses[slot];
        for (size_t k = 0; k < count; ++k) step.is_last_use[first + k] = last[in[k]] == i && uses[in[k]] == 1;
        for (uint32_t slot : in) uses[slot] = 0;
        first += count;
      };
      if (step.kind == Step::Kind::Conditional) {
        group(1);
        for (uint32_t branch : step.sequence) group(out_.plan.sequences[branch].arguments.size());
      } else {
        group(step.in.size());
      }
    }
  }

  // Marks the collectives before whose first use there is work that takes time.
  void find_overlaps(Sequence& s) const {
    std::vector<double> work_from(s.steps.size() + 1);  // the time of the steps from this one to the end
    std::vector<size_t> next_use(s.slots.size(), s.steps.size());
    for (size_t i = s.steps.size(); i-- > 0;) {
      Step& step = s.steps[i];
      double work_ns = 0;
      if (step.kind == Step::Kind::Launch) work_ns = out_.plan.units[step.unit].cost_ns;
      if (step.kind == Step::Kind::HostCall || hands_through(step)) work_ns = kLeastBesideNs;  // it is not known
      work_from[i] = work_from[i + 1] + work_ns;
      if (step.kind == Step::Kind::Collective) {
        size_t first_use = s.steps.size();
        for (const uint32_t slot : step.out) first_use = std::min(first_use, next_use[slot]);
        step.overlaps = work_from[i + 1] - work_from[first_use] >= kLeastBesideNs;
      }
      for (const uint32_t slot : step.in) next_use[slot] = i;
    }
  }

  // Returns a label for profiles: the most expensive instruction, and the number of the others.
  std::string label(const ClusterPlan& cluster, uint32_t ops) const {
    const hlo::Instruction* most = nullptr;
    double cost = -1;
    for (InstrId id : cluster.members) {
      const auto placement = partition_.placements.find(id);
      const double own = placement == partition_.placements.end() ? 0 : placement->second.cost_ns;
      if (m_[id].op == Op::CONSTANT || own <= cost) continue;
      cost = own;
      most = &m_[id];
    }
    if (!most) return "nothing";
    return std::string(most->name) + (ops > 1 ? " and " + std::to_string(ops - 1) + " more" : "");
  }

  Status launch(Frame& f, CompId c, const ClusterPlan& cluster) {
    Step step;
    step.kind = Step::Kind::Launch;
    step.unit = static_cast<uint32_t>(out_.plan.units.size());
    CompiledCluster unit;
    unit.side = cluster.side;
    unit.cost_ns = cluster.cost_ns;
    for (InstrId id : cluster.members) unit.ops += m_[id].op != Op::CONSTANT;
    unit.label = label(cluster, unit.ops);
    for (Leaf leaf : cluster.inputs) {
      COLLET_ASSIGN(const uint32_t slot, place(f, leaf, cluster.side));
      step.in.push_back(slot);
      unit.argument_bytes.push_back(leaf_bytes(m_, leaf));
    }
    for (Leaf leaf : cluster.outputs) {
      const uint64_t bytes = leaf_bytes(m_, leaf);
      const uint32_t slot = add_slot(f, cluster.side, bytes);
      f.slots[{leaf, cluster.side}] = slot;
      step.out.push_back(slot);
      unit.result_bytes.push_back(bytes);
    }
    out_.plan.units.push_back(std::move(unit));
    out_.sources.push_back({c, &cluster});
    f.sequence.steps.push_back(std::move(step));
    return ok_status();
  }

  Status host_step(Frame& f, const ClusterPlan& cluster) {
    const InstrId id = cluster.members[0];
    switch (m_[id].op) {
      case Op::WHILE:
        return while_step(f, id);
      case Op::CONDITIONAL:
        return conditional_step(f, id);
      case Op::CALL:
        return call_step(f, id);
      case Op::REPLICA_ID:
      case Op::PARTITION_ID: {
        Step step;
        step.kind = m_[id].op == Op::REPLICA_ID ? Step::Kind::ReplicaId : Step::Kind::PartitionId;
        define(f, step, id, {Side::Device});
        f.sequence.steps.push_back(std::move(step));
        return ok_status();
      }
      default:
        if (is_collective(m_[id].op)) return host_step(f, id, Step::Kind::Collective);
        if (m_[id].op == Op::CUSTOM_CALL || m_[id].op == Op::INFEED || m_[id].op == Op::OUTFEED)
          return host_step(f, id, Step::Kind::HostCall);
        return internal_error("plan: the host cannot run '" + std::string(m_[id].name) + "'");
    }
  }

  void define(Frame& f, Step& step, InstrId id, const std::vector<Side>& sides) {
    step.instr = id;
    for (uint32_t i = 0; i < sides.size(); ++i) {
      const uint32_t slot = add_slot(f, sides[i], leaf_bytes(m_, {id, i}));
      f.slots[{{id, i}, sides[i]}] = slot;
      step.out.push_back(slot);
    }
  }

  // Returns the side on which a value that a loop carries, or a branch gets, should be kept: the side that produces it,
  // or else the one that uses it first.
  std::vector<Side> natural_sides(CompId c) const {
    std::map<InstrId, Side> made;
    std::unordered_map<Leaf, Side, hlo::LeafHash> used;
    for (const ClusterPlan& cluster : partition_.computations.at(c).clusters) {
      for (InstrId id : cluster.members) made[id] = cluster.side;
      for (Leaf leaf : cluster.inputs)
        if (cluster.side != Side::Host) {
          const auto [it, fresh] = used.try_emplace(leaf, cluster.side);
          if (!fresh && cluster.side == Side::Device) it->second = Side::Device;
        }
    }
    const std::vector<Leaf> results = hlo::leaves_of(m_, m_[c].root);
    std::vector<Side> out;
    for (Leaf leaf : results) {
      Side side = Side::Device;
      if (const auto it = made.find(leaf.instr); it != made.end()) {
        side = it->second;
      } else if (const auto u = used.find(leaf); u != used.end()) {
        side = u->second;
      }
      out.push_back(side == Side::Host ? Side::Device : side);
    }
    return out;
  }

  Status while_step(Frame& f, InstrId id) {
    const Instruction& instr = m_[id];
    const CompId condition = instr.called[0], body = instr.called[1];
    const std::vector<Side> state = natural_sides(body);
    Step step;
    step.kind = Step::Kind::While;
    const std::vector<Leaf> initial = hlo::operand_leaves(m_, instr);
    for (size_t i = 0; i < initial.size(); ++i) {
      COLLET_ASSIGN(const uint32_t slot, place(f, initial[i], state[i]));
      step.in.push_back(slot);
    }
    COLLET_ASSIGN(const uint32_t c, sequence(condition, state, natural_sides(condition), false));
    COLLET_ASSIGN(const uint32_t b, sequence(body, state, state, false));
    step.sequence = {c, b};
    define(f, step, id, state);
    f.sequence.steps.push_back(std::move(step));
    return ok_status();
  }

  Status conditional_step(Frame& f, InstrId id) {
    const Instruction& instr = m_[id];
    const std::vector<Leaf> operands = hlo::operand_leaves(m_, instr);
    const std::vector<Side> results(static_cast<size_t>(instr.shape.leaf_count()), Side::Device);
    Step step;
    step.kind = Step::Kind::Conditional;
    step.choice_bytes = static_cast<uint32_t>(leaf_bytes(m_, operands[0]));
    COLLET_ASSIGN(const uint32_t choice, place(f, operands[0], side_of(f, operands[0], Side::Device)));
    step.in.push_back(choice);
    size_t at = 1;
    for (CompId branch : instr.called) {
      const size_t n = parameter_leaves(branch).size();
      std::vector<Side> sides;
      for (size_t i = 0; i < n; ++i) {
        const Side side = side_of(f, operands[at + i], Side::Device);
        COLLET_ASSIGN(const uint32_t slot, place(f, operands[at + i], side));
        step.in.push_back(slot);
        sides.push_back(side);
      }
      at += n;
      COLLET_ASSIGN(const uint32_t s, sequence(branch, sides, results, false));
      step.sequence.push_back(s);
    }
    define(f, step, id, results);
    f.sequence.steps.push_back(std::move(step));
    return ok_status();
  }

  Status call_step(Frame& f, InstrId id) {
    const Instruction& instr = m_[id];
    Step step;
    step.kind = Step::Kind::Call;
    std::vector<Side> sides;
    for (Leaf leaf : hlo::operand_leaves(m_, instr)) {
      sides.push_back(side_of(f, leaf, Side::Device));
      COLLET_ASSIGN(const uint32_t slot, place(f, leaf, sides.back()));
      step.in.push_back(slot);
    }
    const std::vector<Side> results = natural_sides(instr.called[0]);
    COLLET_ASSIGN(const uint32_t s, sequence(instr.called[0], sides, results, false));
    step.sequence = {s};
    define(f, step, id, results);
    f.sequence.steps.push_back(std::move(step));
    return ok_status();
  }

  // Lowers an op that the host computes: it reads arrays from the device and writes its results there.
  Status host_step(Frame& f, InstrId id, Step::Kind kind) {
    Step step;
    step.kind = kind;
    for (Leaf leaf : hlo::operand_leaves(m_, m_[id])) {
      COLLET_ASSIGN(const uint32_t slot, place(f, leaf, side_of(f, leaf, Side::Device)));
      step.in.push_back(slot);
    }
    define(f, step, id, std::vector<Side>(static_cast<size_t>(m_[id].shape.leaf_count()), Side::Device));
    f.sequence.steps.push_back(std::move(step));
    return ok_status();
  }

  const Module& m_;
  const Partition& partition_;
  hlo::ContentIds& ids_;
  Lowered out_;
};

// A step that writes or reads a slot, and the index of the slot among its outputs or inputs.
struct SlotUse {
  const Step* step = nullptr;
  uint32_t index = 0;
};

struct SlotUses {
  explicit SlotUses(const Sequence& s) : made(s.slots.size()), last_read(s.slots.size()), handed(s.slots.size()) {
    for (const Step& step : s.steps) {
      for (uint32_t i = 0; i < step.out.size(); ++i) made[step.out[i]] = {&step, i};
      for (uint32_t i = 0; i < step.in.size(); ++i) {
        last_read[step.in[i]] = {&step, i};
        if (hands_through(step)) handed[step.in[i]] = true;
      }
    }
  }
  std::vector<SlotUse> made, last_read;
  std::vector<bool> handed;  ///< by slot: a loop, branch or call reads it
};

// True if `maker` may overwrite `argument`: no later step reads the memory. Loops, branches and calls may return an
// argument unchanged, so their results are followed as well.
bool is_last_reader(const Sequence& entry, const Step* maker, uint32_t argument) {
  std::vector<bool> shares(entry.slots.size());
  shares[argument] = true;
  const auto is_shared = [&](uint32_t slot) { return shares[slot]; };
  const Step* last = nullptr;
  for (const Step& s : entry.steps) {
    if (std::none_of(s.in.begin(), s.in.end(), is_shared)) continue;
    last = &s;
    if (!hands_through(s)) continue;
    for (const uint32_t slot : s.out) shares[slot] = true;
  }
  if (last != maker || std::any_of(entry.results.begin(), entry.results.end(), is_shared)) return false;
  const auto others = [&](uint32_t slot) { return shares[slot] && slot != argument; };
  return std::none_of(maker->in.begin(), maker->in.end(), others);
}

// Finds the aliases of the module that a launch can use: the result is written by a launch that reads the argument, and
// nothing reads the argument's memory later.
void find_donations(const Module& module, Lowered& lowered) {
  Plan& plan = lowered.plan;
  const Sequence& entry = plan.sequences[0];
  const SlotUses uses(entry);
  const std::vector<bool> given_back = [&] {
    std::vector<bool> out(entry.slots.size());
    for (const uint32_t slot : entry.results) out[slot] = true;
    return out;
  }();
  for (const hlo::ProgramAlias& alias : hlo::entry_aliases(module)) {
    const uint32_t result = entry.results[alias.result], argument = entry.arguments[alias.argument];
    const SlotUse maker = uses.made[result], reader = uses.last_read[argument];
    if (!maker.step || maker.step != reader.step || maker.step->kind != Step::Kind::Launch) continue;
    if (entry.slots[result].bytes != entry.slots[argument].bytes || given_back[argument]) continue;
    if (uses.handed[argument] && !is_last_reader(entry, maker.step, argument)) continue;
    plan.units[maker.step->unit].aliases.push_back({maker.index, reader.index, alias.must});
    plan.donations.push_back({alias.result, alias.argument, alias.must});
  }
}

// True if no step of a sequence runs on the host.
bool is_device_only(const Plan& plan, const Sequence& sequence) {
  return std::all_of(sequence.steps.begin(), sequence.steps.end(), [&](const Step& step) {
    switch (step.kind) {
      case Step::Kind::Launch:
        return plan.units[step.unit].side == Side::Device;
      case Step::Kind::Copy:
        return sequence.slots[step.in[0]].side == Side::Device && sequence.slots[step.out[0]].side == Side::Device;
      case Step::Kind::Constant:
      case Step::Kind::ReplicaId:
      case Step::Kind::PartitionId:
        return true;
      case Step::Kind::Call:
        return is_device_only(plan, plan.sequences[step.sequence[0]]);
      default:
        return false;
    }
  });
}

}  // namespace

Expected<Lowered> lower(const Module& module, const Partition& partition, hlo::ContentIds& ids) {
  COLLET_ASSIGN(Lowered lowered, Lowerer(module, partition, ids).run());
  find_donations(module, lowered);
  find_updates(module, lowered);
  lowered.plan.device_only = is_device_only(lowered.plan, lowered.plan.sequences[0]);
  return lowered;
}

}  // namespace collet::runtime
