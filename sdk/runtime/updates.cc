// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/updates.h"

#include <algorithm>
#include <optional>

#include "hlo/program/leaves.h"

namespace collet::runtime {
namespace {

using hlo::InstrId;
using hlo::Instruction;
using hlo::Leaf;
using hlo::Module;
using hlo::Op;

/// Follows a value to the array that it is with some elements changed.
class Origin {
 public:
  Origin(const Module& module, const std::vector<Leaf>& inputs) : m_(module), inputs_(inputs) {}

  /// The number of the input that `leaf` changes a part of.
  std::optional<uint32_t> of(Leaf leaf) const {
    bool changed = false;
    const std::optional<Leaf> from = follow(leaf, changed, 0);
    const auto at = from ? std::find(inputs_.begin(), inputs_.end(), *from) : inputs_.end();
    if (!changed || at == inputs_.end()) return std::nullopt;
    return static_cast<uint32_t>(at - inputs_.begin());
  }

 private:
  static constexpr int kMostSteps = 64;

  /// An input, or a parameter where a called computation begins.
  std::optional<Leaf> follow(Leaf leaf, bool& changed, int steps) const {
    leaf = hlo::resolve_leaf(m_, leaf);
    if (++steps > kMostSteps) return std::nullopt;
    if (std::find(inputs_.begin(), inputs_.end(), leaf) != inputs_.end()) return leaf;
    const Instruction& instr = m_[leaf.instr];
    switch (instr.op) {
      case Op::PARAMETER:
        return leaf;
      case Op::DYNAMIC_UPDATE_SLICE:
      case Op::SCATTER:
        changed = true;
        return follow({instr.operand(leaf.index), 0}, changed, steps);
      case Op::SELECT: {  // an update, or all as it was
        const std::optional<Leaf> one = follow({instr.operand(1), 0}, changed, steps);
        const std::optional<Leaf> other = follow({instr.operand(2), 0}, changed, steps);
        return one == other ? one : std::nullopt;
      }
      case Op::RESHAPE:
      case Op::BITCAST:
      case Op::COPY:
      case Op::OPT_BARRIER:
        return follow({instr.operand(0), leaf.index}, changed, steps);
      case Op::FUSION:
      case Op::CALL: {
        const std::vector<Leaf> results = hlo::leaves_of(m_, m_[instr.called[0]].root);
        const std::optional<Leaf> inner = follow(results[leaf.index], changed, steps);
        if (!inner || m_[inner->instr].op != Op::PARAMETER) return std::nullopt;
        const auto& parameters = m_[instr.called[0]].parameters;
        const auto p = std::find(parameters.begin(), parameters.end(), inner->instr);
        if (p == parameters.end()) return inner;
        return follow({instr.operand(static_cast<size_t>(p - parameters.begin())), inner->index}, changed, steps);
      }
      default:
        return std::nullopt;
    }
  }

  const Module& m_;
  const std::vector<Leaf>& inputs_;
};

void find_updates(const Module& module, const Sequence& sequence, Lowered& lowered) {
  for (const Step& step : sequence.steps) {
    if (step.kind != Step::Kind::Launch) continue;
    const ClusterPlan& cluster = *lowered.sources[step.unit].cluster;
    Unit& unit = lowered.plan.units[step.unit];
    const Origin origin(module, cluster.inputs);
    const auto taken = [&](uint32_t result, uint32_t argument) {
      const auto meets = [&](const hlo::ProgramAlias& a) { return a.result == result || a.argument == argument; };
      return std::any_of(unit.aliases.begin(), unit.aliases.end(), meets) ||
             std::any_of(unit.updates.begin(), unit.updates.end(), meets);
    };
    for (uint32_t r = 0; r < cluster.outputs.size(); ++r) {
      const std::optional<uint32_t> a = origin.of(cluster.outputs[r]);
      if (!a || taken(r, *a) || unit.argument_bytes[*a] != unit.result_bytes[r]) continue;
      const uint32_t slot = step.in[*a];
      const bool last = std::find(step.dead.begin(), step.dead.end(), slot) != step.dead.end();
      if (last && std::count(step.in.begin(), step.in.end(), slot) == 1) unit.updates.push_back({r, *a, false});
    }
  }
}

}  // namespace

void find_updates(const Module& module, Lowered& lowered) {
  for (const Sequence& sequence : lowered.plan.sequences) find_updates(module, sequence, lowered);
}

}  // namespace collet::runtime
