// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/collective.h"

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
                                                       std::span<const Literal>) override {
    group_.assign(group.begin(), group.end());
    std::vector<std::vector<Literal>> out;
    for (int64_t id : group) {
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
  const hlo::Module& module_;
  const PresentParticipants& participants_;
  const std::vector<std::vector<Literal>>& operands_;
  uint32_t number_;
  std::vector<int64_t> group_;
};

}  // namespace

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
  // Converts leaves back to operands.
  for (std::vector<Literal>& mine : operands) {
    std::vector<Literal> whole;
    size_t at = 0;
    for (hlo::InstrId id : instr.operands) whole.push_back(assemble(module[id].shape, mine, at));
    mine = std::move(whole);
  }
  // All members of a group get the same sum, so it is computed once.
  const bool shared = instr.op == Op::ALL_REDUCE || instr.op == Op::ALL_REDUCE_START;
  std::vector<std::vector<Literal>> out(participants.present.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!out[i].empty()) continue;
    Member member(module, participants, operands, participants.present[i]);
    std::vector<Literal> mine = operands[i];
    auto value = hlo::evaluate({module, instr, mine, member});
    if (!value.ok()) return value.status();
    out[i] = hlo::flatten(*value);
    if (!shared) continue;
    for (int64_t other : member.group()) {
      const auto it = std::lower_bound(participants.present.begin(), participants.present.end(), other);
      const auto at = static_cast<size_t>(it - participants.present.begin());
      if (at != i) out[at] = out[i];
    }
  }
  return out;
}

}  // namespace collet::runtime
