// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/plan/updates.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "hlo/program/leaves.h"

namespace collet::runtime {
namespace {

using hlo::InstrId;
using hlo::Instruction;
using hlo::Leaf;
using hlo::Module;
using hlo::Op;

/// Traces a value back to the array from which it was computed by changing some elements.
class Origin {
 public:
  Origin(const Module& module, const std::vector<Leaf>& inputs) : m_(module) {
    for (uint32_t i = 0; i < inputs.size(); ++i) inputs_.emplace(inputs[i], i);
  }

  /// Returns the number of the input of which `leaf` is an update.
  std::optional<uint32_t> of(Leaf leaf) {
    const Found found = follow(leaf, 0);
    if (!found.from || !found.changed) return std::nullopt;
    const auto at = inputs_.find(*found.from);
    return at == inputs_.end() ? std::nullopt : std::optional(at->second);
  }

 private:
  static constexpr int kMostSteps = 1000;

  struct Found {
    std::optional<Leaf> from;  ///< an input, or a parameter of a called computation
    bool changed = false;      ///< some elements were changed
  };

  // Results are stored, so each value is traced once: the operands of a select often come from the same value.
  Found follow(Leaf leaf, int steps) {
    leaf = hlo::resolve_leaf(m_, leaf);
    if (inputs_.contains(leaf)) return {leaf, false};
    if (const auto known = known_.find(leaf); known != known_.end()) return known->second;
    if (++steps > kMostSteps) return {};
    const Found found = through(leaf, steps);
    known_.emplace(leaf, found);
    return found;
  }

  Found through(Leaf leaf, int steps) {
    const Instruction& instr = m_[leaf.instr];
    switch (instr.op) {
      case Op::PARAMETER:
        return {leaf, false};
      case Op::DYNAMIC_UPDATE_SLICE:
      case Op::SCATTER:
        return {follow({instr.operand(leaf.index), 0}, steps).from, true};
      case Op::SELECT: {  // either the update or the unchanged array
        const Found one = follow({instr.operand(1), 0}, steps);
        const Found other = follow({instr.operand(2), 0}, steps);
        return one.from == other.from ? Found{one.from, one.changed || other.changed} : Found{};
      }
      case Op::RESHAPE:
      case Op::BITCAST:
      case Op::COPY:
      case Op::OPT_BARRIER:
        return follow({instr.operand(0), leaf.index}, steps);
      case Op::FUSION:
      case Op::CALL: {
        const std::vector<Leaf> results = hlo::leaves_of(m_, m_[instr.called[0]].root);
        const Found inner = follow(results[leaf.index], steps);
        if (!inner.from || m_[inner.from->instr].op != Op::PARAMETER) return {};
        const auto& parameters = m_[instr.called[0]].parameters;
        const auto p = std::find(parameters.begin(), parameters.end(), inner.from->instr);
        if (p == parameters.end()) return inner;
        const Found outer =
            follow({instr.operand(static_cast<size_t>(p - parameters.begin())), inner.from->index}, steps);
        return {outer.from, inner.changed || outer.changed};
      }
      default:
        return {};
    }
  }

  const Module& m_;
  std::unordered_map<Leaf, uint32_t, hlo::LeafHash> inputs_;
  std::unordered_map<Leaf, Found, hlo::LeafHash> known_;
};

void find_updates(const Module& module, const Sequence& sequence, Lowered& lowered) {
  for (const Step& step : sequence.steps) {
    if (step.kind != Step::Kind::Launch) continue;
    const ClusterPlan& cluster = *lowered.sources[step.unit].cluster;
    CompiledCluster& unit = lowered.plan.units[step.unit];
    Origin origin(module, cluster.inputs);
    std::vector<bool> has_alias(cluster.outputs.size()), is_taken(cluster.inputs.size());
    for (const hlo::ProgramAlias& alias : unit.aliases) has_alias[alias.result] = is_taken[alias.argument] = true;
    for (uint32_t r = 0; r < cluster.outputs.size(); ++r) {
      if (has_alias[r]) continue;
      const std::optional<uint32_t> a = origin.of(cluster.outputs[r]);
      if (!a || is_taken[*a] || unit.argument_bytes[*a] != unit.result_bytes[r] || !step.is_last_use[*a]) continue;
      is_taken[*a] = true;
      unit.updates.push_back({r, *a, false});
    }
  }
}

}  // namespace

void find_updates(const Module& module, Lowered& lowered) {
  for (const Sequence& sequence : lowered.plan.sequences) find_updates(module, sequence, lowered);
}

}  // namespace collet::runtime
