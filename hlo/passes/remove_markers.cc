// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "hlo/ops/markers.h"
#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

namespace collet::hlo {
namespace {

// Custom calls that return their operand, in addition to the markers of sharding; some of them also occur without a
// result.
constexpr std::array<std::string_view, 3> kOthers = {"PinToDevice", "InspectSharding", "shape_assertion_done"};

bool is_annotation(const Module& module, const Instruction& instr) {
  if (instr.op != Op::CUSTOM_CALL || instr.operands.size() != 1) return false;
  const auto target = instr.as<CustomCallAttrs>().target;
  return (is_marker_target(target) || std::find(kOthers.begin(), kOthers.end(), target) != kOthers.end()) &&
         module[instr.operand(0)].shape.same_without_layout(instr.shape);
}

// True for custom calls without a result that only keep their operand alive while a frontend optimises, or request an
// order for independent operations.
bool is_sink(const Instruction& instr) {
  if (instr.op != Op::CUSTOM_CALL || !instr.shape.is_tuple() || !instr.shape.elements().empty()) return false;
  const auto target = instr.as<CustomCallAttrs>().target;
  return target == "dce_sink" || target == "control_dep";
}

struct Participants {
  int64_t replicas, partitions;
};

// True if each participant is alone in its group.
bool alone(const Groups& groups, int64_t channel, bool global_ids, Participants n) {
  if (n.replicas * n.partitions == 1) return true;
  const bool each_is_one = !groups.empty() && std::all_of(groups.groups.begin(), groups.groups.end(),
                                                          [](const Dims& group) { return group.size() == 1; });
  if (channel != 0 && global_ids) return each_is_one;
  if (channel != 0) return n.partitions == 1 && (each_is_one || (groups.empty() && n.replicas == 1));
  return each_is_one || (groups.empty() && n.replicas == 1);
}

bool is_alone(const Instruction& instr, Participants n) {
  switch (op_info(instr.op).record) {
    case Record::Collective: {
      const auto& a = instr.as<CollectiveAttrs>();
      return alone(a.groups, a.channel, a.global_ids, n);
    }
    case Record::CollectiveDim: {
      const auto& a = instr.as<CollectiveDimAttrs>();
      return alone(a.groups, a.channel, a.global_ids, n);
    }
    case Record::AllToAll: {
      const auto& a = instr.as<AllToAllAttrs>();
      return alone(a.groups, a.channel, false, n);
    }
    default:
      return n.replicas * n.partitions == 1;
  }
}

// In a group of one participant, a collective-permute returns its operand if the pair (0, 0) is listed, else zeros.
InstrId permute_alone(Builder& b, const Instruction& instr) {
  for (size_t i = 0; i + 1 < instr.as<CollectivePermuteAttrs>().pairs.size(); i += 2)
    if (instr.as<CollectivePermuteAttrs>().pairs[i] == 0 && instr.as<CollectivePermuteAttrs>().pairs[i + 1] == 0)
      return instr.operand(0);
  return b.fill(b.shape(instr.operand(0)), 0);
}

// Returns an array of shape `out` with `x`, the shard of the only participant, at its begin and zeros in place of other shards.
InstrId fitted(Builder& b, InstrId x, const Shape& out) {
  if (b.shape(x).same_without_layout(out)) return x;
  if (!b.shape(x).is_array() || b.rank(x) != out.rank() || b.shape(x).has_dynamic() || out.has_dynamic())
    return InstrId::None;
  for (int d = 0; d < out.rank(); ++d) {
    const int64_t have = b.dims(x)[static_cast<size_t>(d)], want = out.dim(d);
    if (have > want) x = b.slice_dim(x, d, 0, want);
    if (have < want) x = b.pad_dim(x, b.scalar(out.type(), 0), d, 0, want - have);
  }
  return b.shape(x).same_without_layout(out) ? x : InstrId::None;
}

// Returns the result of collective `instr` in a group of one participant; None if `instr` must stay.
InstrId without_others(Module& module, Builder& b, const Instruction& instr, Participants n) {
  switch (instr.op) {
    case Op::ALL_REDUCE:
    case Op::ALL_GATHER:
    case Op::REDUCE_SCATTER:
    case Op::ALL_TO_ALL:
    case Op::COLLECTIVE_BROADCAST: {
      if (!is_alone(instr, n)) return InstrId::None;
      std::vector<InstrId> results(instr.operands.begin(), instr.operands.end());
      for (size_t i = 0; i < results.size(); ++i) {
        const Shape& out = instr.shape.is_tuple() ? instr.shape.element(i) : instr.shape;
        if (!module[results[i]].shape.same_without_layout(out) && n.replicas * n.partitions != 1) return InstrId::None;
        results[i] = fitted(b, results[i], out);
        if (results[i] == InstrId::None) return InstrId::None;
      }
      return instr.shape.is_tuple() ? b.tuple(results) : results[0];
    }
    case Op::COLLECTIVE_PERMUTE:
      if (n.replicas * n.partitions != 1 || instr.operands.size() != 1 || !module[instr.operand(0)].shape.is_array())
        return InstrId::None;
      return permute_alone(b, instr);
    case Op::REPLICA_ID:
      return n.replicas == 1 ? b.fill_int(instr.shape, 0) : InstrId::None;
    case Op::PARTITION_ID:
      return n.partitions == 1 ? b.fill_int(instr.shape, 0) : InstrId::None;
    default:
      return InstrId::None;
  }
}

}  // namespace

Expected<bool> remove_markers(Module& module, PassContext& context) {
  const Participants n{context.replica_count, context.partition_count};
  bool changed = false;
  for (CompId computation : post_order(module)) {
    Rewriter rewriter(module, computation);
    for (InstrId id : rewriter.instructions()) {
      const Instruction& instr = rewriter.enter(id);
      InstrId with = InstrId::None;
      if ((instr.op == Op::COPY || instr.op == Op::DOMAIN || is_annotation(module, instr)) &&
          module[instr.operand(0)].shape == instr.shape)
        with = instr.operand(0);
      else if (is_sink(instr))
        with = rewriter.builder().tuple({});
      else
        with = without_others(module, rewriter.builder(), instr, n);
      if (with == InstrId::None)
        rewriter.keep(id);
      else
        rewriter.replace(id, with);
    }
    changed |= rewriter.finish();
    COLLET_TRY(rewriter.builder().status());
  }
  return changed;
}

}  // namespace collet::hlo
