// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "hlo/passes/rewriter.h"
#include "hlo/passes/spmd/walker.h"

// Control flow: what goes round a loop, or comes out of a branch, lies the same way each time.

namespace collet::hlo::spmd {
namespace {

constexpr int kMostRounds = 3;  // of looking for tilings that the body keeps

}  // namespace

// A copy of computation `from`, which takes one value of shape `global`, for tiles. `with_number`: behind the elements of
// its argument, a tuple, the partition's number; `give_number`: and behind those of its result.
Expected<Walker::Body> Walker::body(CompId from, const Shape& global, const std::vector<Tiling>& leaves,
                                    bool with_number, const std::vector<Tiling>* result, bool give_number, bool trial) {
  Body out;
  out.computation = m_.add_computation(
      m_.arena().string(std::string(m_[from].name) + ".tile." + std::to_string(m_.computation_limit())));
  size_t at = 0;
  const Shape local = local_shape(global, leaves, at);
  Shape taken = local;
  if (with_number) {
    std::vector<Shape> elements(local.elements().begin(), local.elements().end());
    elements.push_back(Shape::array(Type::U32, {}));
    taken = Shape::tuple(std::move(elements));
  }
  Emitter emitter(m_, out.computation, shared_.replicas, shared_.channels);
  Builder& b = emitter.builder();
  Value argument{m_.append_parameter(out.computation, 0, taken), leaves, {}, false};
  if (with_number) {
    std::vector<InstrId> parts;
    for (size_t i = 0; i < local.elements().size(); ++i) parts.push_back(b.get(argument.id, static_cast<int64_t>(i)));
    emitter.set_partition_id(b.get(argument.id, static_cast<int64_t>(parts.size())));
    argument.id = b.tuple(parts);
  }
  Walker walker(shared_, emitter, world_, trial);
  COLLET_ASSIGN(Value value, walker.walk(from, {argument}));
  if (value.manual)
    return unimplemented("the result of computation " + std::string(m_[from].name) +
                         " differs from one partition to another");
  value = walker.settled(std::move(value));
  out.leaves = value.leaves;
  if (result) value = walker.reshard(value, *result);
  if (give_number) {
    std::vector<InstrId> parts;
    for (size_t i = 0; i + 1 < taken.elements().size(); ++i) parts.push_back(b.get(value.id, static_cast<int64_t>(i)));
    parts.push_back(emitter.partition_id());
    value.id = b.tuple(parts);
  }
  COLLET_TRY(b.status());
  m_[out.computation].root = value.id;
  return out;
}

// Asked once for each way to lie: loops in loops would be walked three times more for each level.
Expected<std::vector<Tiling>> Walker::result_of(CompId from, const Shape& global, const std::vector<Tiling>& leaves,
                                                bool with_number) {
  const Shared::Question question{from, world_.domain, leaves};
  if (auto it = shared_.answers.find(question); it != shared_.answers.end()) return it->second;
  COLLET_ASSIGN(Body tried, body(from, global, leaves, with_number, nullptr, false, true));
  return shared_.answers[question] = std::move(tried.leaves);
}

// In a computation that is dropped once its result has been looked at.
Value Walker::stand_in(const Instruction& instr, InstrId operand, std::vector<Tiling> leaves) {
  size_t at = 0;
  const InstrId id = b_.op(instr.op, local_shape(instr.shape, leaves, at), {operand});
  return Value{id, std::move(leaves), {}, false};
}

Expected<Value> Walker::loop(const Instruction& instr, const Value& init) {
  const CompId condition = instr.called[0], turn = instr.called[1];
  const bool number = instr.shape.is_tuple() && !world_.alone();
  std::vector<Tiling> state = init.leaves;
  // What begins whole may come out of the body split: then it had better be split from the start.
  for (int round = 0; round < kMostRounds && !world_.alone(); ++round) {
    COLLET_ASSIGN(const std::vector<Tiling> tried, result_of(turn, instr.shape, state, number));
    bool changed = false;
    for (size_t i = 0; i < state.size(); ++i)
      for (size_t d = 0; d < state[i].size(); ++d) {
        if (!state[i][d].whole() || tried[i][d].whole()) continue;
        Column before = std::exchange(state[i][d], tried[i][d]);
        if (fits(state[i], world_))
          changed = true;
        else
          state[i][d] = std::move(before);
      }
    if (!changed) break;
  }
  Value in = reshard(init, state);
  if (trial_) return stand_in(instr, in.id, std::move(state));
  COLLET_ASSIGN(const Body again, body(condition, instr.shape, state, number, nullptr, false));
  COLLET_ASSIGN(const Body next, body(turn, instr.shape, state, number, &state, number));
  if (number) {
    std::vector<InstrId> parts;
    for (size_t i = 0; i < instr.shape.elements().size(); ++i) parts.push_back(b_.get(in.id, static_cast<int64_t>(i)));
    parts.push_back(e_.partition_id());
    in.id = b_.tuple(parts);
  }
  COLLET_TRY(b_.status());
  const InstrId id =
      b_.op(Op::WHILE, Shape(b_.shape(in.id)), {in.id}, nullptr, std::array{again.computation, next.computation});
  if (!number) return Value{id, state, {}, false};
  std::vector<InstrId> parts;
  for (size_t i = 0; i < instr.shape.elements().size(); ++i) parts.push_back(b_.get(id, static_cast<int64_t>(i)));
  return Value{b_.tuple(parts), state, {}, false};
}

Expected<Value> Walker::conditional(const Instruction& instr, Operands in) {
  std::vector<Tiling> result;
  std::vector<CompId> bodies;
  if (trial_) {
    COLLET_ASSIGN(result, result_of(instr.called[0], m_[instr.operand(1)].shape, in[1].leaves, false));
    return stand_in(instr, in[1].id, std::move(result));
  }
  for (size_t k = 0; k < instr.called.size(); ++k) {
    const Shape global = m_[instr.operand(k + 1)].shape;
    const CompId from = instr.called[k];
    if (bodies.empty()) {
      COLLET_ASSIGN(const Body first, body(from, global, in[k + 1].leaves, false, nullptr, false));
      result = first.leaves;
      bodies.push_back(first.computation);
    } else {
      COLLET_ASSIGN(const Body other, body(from, global, in[k + 1].leaves, false, &result, false));
      bodies.push_back(other.computation);
    }
  }
  size_t at = 0;
  std::vector<InstrId> operands;
  for (const Value& v : in) operands.push_back(v.id);
  const InstrId id = b_.op(instr.op, local_shape(instr.shape, result, at), operands, instr.attrs, bodies);
  return Value{id, result, {}, false};
}

}  // namespace collet::hlo::spmd
