// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/run/collective.h"

#include <algorithm>
#include <string>
#include <utility>

#include "hlo/eval/evaluator.h"
#include "hlo/ops/evaluate.h"

namespace collet::runtime {
namespace {

using hlo::Instruction;
using hlo::Literal;
using hlo::Op;
using hlo::Shape;

// Returns the value of `shape` whose leaves begin at `at`.
Literal assemble(const Shape& shape, std::span<const Literal> leaves, size_t& at) {
  if (!shape.is_tuple()) return at < leaves.size() ? leaves[at++] : Literal();
  std::vector<Literal> elements;
  for (const Shape& element : shape.elements()) elements.push_back(assemble(element, leaves, at));
  return Literal::tuple(std::move(elements));
}

// The evaluation context of one participant of a collective. The operands of all participants are available, so nothing
// waits.
class Member : public hlo::EvalContext {
 public:
  Member(const hlo::Module& module, const PresentParticipants& participants,
         const std::vector<std::vector<Literal>>& operands, uint32_t number)
      : module_(module), participants_(participants), operands_(operands), number_(number) {}

  int64_t replica() const override { return number_ / participants_.partitions; }
  int64_t partition() const override { return number_ % participants_.partitions; }
  int64_t replica_count() const override { return participants_.replicas; }
  int64_t partition_count() const override { return participants_.partitions; }

  Expected<std::vector<std::vector<Literal>>> exchange(const Instruction& instr, std::span<const int64_t> group,
                                                       std::span<const Literal> mine) override {
    mine_.assign(mine.begin(), mine.end());
    group_.assign(group.begin(), group.end());
    std::vector<std::vector<Literal>> out;
    for (int64_t id : group) {
      if (participants_.needs && !depends_on(id)) {
        out.push_back(mine_);  // of the right shapes; the result does not depend on it
        continue;
      }
      const auto it = std::lower_bound(participants_.present.begin(), participants_.present.end(), id);
      if (it == participants_.present.end() || *it != id)
        return failed_precondition("'" + std::string(instr.name) + "' (" + std::string(op_info(instr.op).text) +
                                   "): participant " + std::to_string(number_) + " waits for participant " +
                                   std::to_string(id) + ", which takes another way through control flow");
      out.push_back(operands_[static_cast<size_t>(it - participants_.present.begin())]);
    }
    return out;
  }

  Expected<Literal> call(hlo::CompId computation, std::span<Literal> arguments) override {
    return hlo::Evaluator(module_).run_computation(computation, {arguments.begin(), arguments.end()});
  }
  std::pair<uint64_t, uint64_t> next_rng_state(uint64_t) override { return {0, 0}; }

  /// The group with which it exchanged data; empty before the exchange, and if it was alone.
  const std::vector<int64_t>& group() const { return group_; }

 private:
  bool depends_on(int64_t id) const {
    const std::vector<uint32_t>& needs = (*participants_.needs)[number_];
    return id == number_ || std::binary_search(needs.begin(), needs.end(), static_cast<uint32_t>(id));
  }

  const hlo::Module& module_;
  const PresentParticipants& participants_;
  const std::vector<std::vector<Literal>>& operands_;
  uint32_t number_;
  std::vector<int64_t> group_;
  std::vector<Literal> mine_;
};

// Finds the group of a participant, without data of others.
class GroupFinder : public hlo::EvalContext {
 public:
  GroupFinder(uint32_t replicas, uint32_t partitions, uint32_t number)
      : replicas_(replicas), partitions_(partitions), number_(number) {}

  int64_t replica() const override { return number_ / partitions_; }
  int64_t partition() const override { return number_ % partitions_; }
  int64_t replica_count() const override { return replicas_; }
  int64_t partition_count() const override { return partitions_; }
  Expected<std::vector<std::vector<Literal>>> exchange(const Instruction&, std::span<const int64_t> group,
                                                       std::span<const Literal>) override {
    group_.assign(group.begin(), group.end());
    return Status(Code::Cancelled, "the group is known");
  }
  Expected<Literal> call(hlo::CompId, std::span<Literal>) override { return internal_error("a call without data"); }
  std::pair<uint64_t, uint64_t> next_rng_state(uint64_t) override { return {0, 0}; }

  /// The group; empty if the participant exchanges nothing.
  const std::vector<int64_t>& group() const { return group_; }

 private:
  uint32_t replicas_, partitions_, number_;
  std::vector<int64_t> group_;
};

// Removes those members of a group on whose operands the result of `number` does not depend.
void keep_sources(const Instruction& instr, uint32_t number, std::vector<int64_t>& group) {
  if (instr.op == Op::COLLECTIVE_BROADCAST) group.resize(std::min<size_t>(group.size(), 1));
  if (instr.op != Op::COLLECTIVE_PERMUTE && instr.op != Op::COLLECTIVE_PERMUTE_START) return;
  const auto& pairs = instr.as<hlo::CollectivePermuteAttrs>().pairs;
  const auto count = static_cast<int64_t>(group.size());
  std::vector<int64_t> sources;
  for (size_t i = 0; i + 1 < pairs.size(); i += 2)
    if (pairs[i] >= 0 && pairs[i] < count && pairs[i + 1] >= 0 && pairs[i + 1] < count &&
        group[static_cast<size_t>(pairs[i + 1])] == number)
      sources.push_back(group[static_cast<size_t>(pairs[i])]);
  group = std::move(sources);
}

// Converts leaves to the operands of the instruction.
std::vector<Literal> assembled(const hlo::Module& module, const Instruction& instr, std::span<const Literal> leaves) {
  std::vector<Literal> whole;
  size_t at = 0;
  for (hlo::InstrId id : instr.operands) whole.push_back(assemble(module[id].shape, leaves, at));
  return whole;
}

}  // namespace

Expected<std::vector<std::vector<uint32_t>>> ordered_groups(const hlo::Module& module, const Instruction& instr,
                                                            uint32_t replicas, uint32_t partitions,
                                                            const std::vector<Literal>& operands) {
  std::vector<std::vector<uint32_t>> out(size_t{replicas} * partitions);
  for (uint32_t number = 0; number < out.size(); ++number) {
    GroupFinder finder(replicas, partitions, number);
    std::vector<Literal> mine = assembled(module, instr, operands);
    auto value = hlo::evaluate({module, instr, mine, finder});
    if (!value.ok() && value.status().code() != Code::Cancelled) return value.status();
    for (const int64_t id : finder.group()) out[number].push_back(static_cast<uint32_t>(id));
    if (out[number].empty()) out[number].push_back(number);
  }
  return out;
}

std::vector<std::pair<uint32_t, uint32_t>> permute_pairs(const Instruction& instr, const std::vector<uint32_t>& group) {
  const auto& pairs = instr.as<hlo::CollectivePermuteAttrs>().pairs;
  std::vector<std::pair<uint32_t, uint32_t>> out;
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const auto source = static_cast<uint64_t>(pairs[i]), target = static_cast<uint64_t>(pairs[i + 1]);
    if (source < group.size() && target < group.size()) out.emplace_back(group[source], group[target]);
  }
  return out;
}

std::vector<std::vector<uint32_t>> dependencies(const Instruction& instr,
                                                const std::vector<std::vector<uint32_t>>& groups) {
  std::vector<std::vector<uint32_t>> out(groups.size());
  for (uint32_t number = 0; number < out.size(); ++number) {
    std::vector<int64_t> group(groups[number].begin(), groups[number].end());
    keep_sources(instr, number, group);
    for (const int64_t id : group)
      if (id != number) out[number].push_back(static_cast<uint32_t>(id));
    std::sort(out[number].begin(), out[number].end());
  }
  return out;
}

bool is_collective(Op op) {
  switch (op) {
    case Op::ALL_GATHER:
    case Op::ALL_GATHER_START:
    case Op::ALL_GATHER_DONE:
    case Op::ALL_REDUCE:
    case Op::ALL_REDUCE_START:
    case Op::ALL_REDUCE_DONE:
    case Op::ALL_TO_ALL:
    case Op::COLLECTIVE_BROADCAST:
    case Op::COLLECTIVE_PERMUTE:
    case Op::COLLECTIVE_PERMUTE_START:
    case Op::COLLECTIVE_PERMUTE_DONE:
    case Op::RAGGED_ALL_TO_ALL:
    case Op::REDUCE_SCATTER:
      return true;
    default:
      return false;
  }
}

Expected<std::vector<std::vector<Literal>>> run_collective(const hlo::Module& module, const Instruction& instr,
                                                           const PresentParticipants& participants,
                                                           std::vector<std::vector<Literal>> operands) {
  for (std::vector<Literal>& mine : operands) mine = assembled(module, instr, mine);
  const std::span<const uint32_t> wanted = participants.wanted.empty() ? participants.present : participants.wanted;
  // All members of a group get the same sum, so it is computed once.
  const bool shared = instr.op == Op::ALL_REDUCE || instr.op == Op::ALL_REDUCE_START;
  std::vector<std::vector<Literal>> out(wanted.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!out[i].empty()) continue;
    Member member(module, participants, operands, wanted[i]);
    const auto own = std::lower_bound(participants.present.begin(), participants.present.end(), wanted[i]);
    std::vector<Literal> mine = operands[static_cast<size_t>(own - participants.present.begin())];
    auto value = hlo::evaluate({module, instr, mine, member});
    if (!value.ok()) return value.status();
    out[i] = hlo::flatten(*value);
    if (!shared) continue;
    for (int64_t other : member.group()) {
      const auto it = std::lower_bound(wanted.begin(), wanted.end(), other);
      if (it == wanted.end() || *it != other) continue;
      const auto at = static_cast<size_t>(it - wanted.begin());
      if (at != i) out[at] = out[i];
    }
  }
  return out;
}

}  // namespace collet::runtime
