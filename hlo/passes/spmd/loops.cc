// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "hlo/passes/rewriter.h"
#include "hlo/passes/spmd/walker.h"

// Control flow: what goes round a loop, or comes out of a branch, lies the same way each time.

namespace collet::hlo::spmd {
namespace {

constexpr int kMostRounds = 3;  // of looking for tilings that the body keeps

// What begins whole may come out of the body split: then it had better be split from the start. Sums stay open where the
// body leaves them so. False where nothing changes.
bool keep_up(Lie& state, const Lie& tried, const World& world) {
  bool changed = false;
  for (size_t i = 0; i < state.leaves.size(); ++i) {
    Column& open = state.open[i];
    if (!open.whole() && !same_parts(open, i < tried.open.size() ? tried.open[i] : Column())) {
      open = Column();
      changed = true;
    }
    const World alike = within(world, open);
    Tiling& tiling = state.leaves[i];
    for (size_t d = 0; d < tiling.size(); ++d) {
      if (!tiling[d].whole() || tried.leaves[i][d].whole()) continue;
      Column before = std::exchange(tiling[d], tried.leaves[i][d]);
      if (fits(tiling, alike))
        changed = true;
      else
        tiling[d] = std::move(before);
    }
  }
  return changed;
}

}  // namespace

// A copy of computation `from`, which takes one value of shape `global`, for tiles. `with_number`: behind the elements of
// its argument, a tuple, the partition's number; `give_number`: and behind those of its result.
Expected<Walker::Body> Walker::body(CompId from, const Shape& global, const Lie& lie, bool with_number,
                                    const Lie* result, bool give_number, bool trial) {
  Body out;
  out.computation = m_.add_computation(
      m_.arena().string(std::string(m_[from].name) + ".tile." + std::to_string(m_.computation_limit())));
  size_t at = 0;
  const Shape local = local_shape(global, lie.leaves, at);
  Shape taken = local;
  if (with_number) {
    std::vector<Shape> elements(local.elements().begin(), local.elements().end());
    elements.push_back(Shape::array(Type::U32, {}));
    taken = Shape::tuple(std::move(elements));
  }
  Emitter emitter(m_, out.computation, shared_.replicas, shared_.channels);
  Builder& b = emitter.builder();
  Value argument{m_.append_parameter(out.computation, 0, taken), lie.leaves, lie.open, false};
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
  if (result)
    value = walker.laid(std::move(value), result->leaves, result->open);
  else if (!trial)
    value = walker.settled(std::move(value));
  out.result = {value.leaves, value.open};
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
Expected<Lie> Walker::result_of(CompId from, const Shape& global, const Lie& argument, bool with_number) {
  const Shared::Question question{from, world_.domain, argument.leaves, argument.open};
  if (auto it = shared_.answers.find(question); it != shared_.answers.end()) return it->second;
  COLLET_ASSIGN(Body tried, body(from, global, argument, with_number, nullptr, false, true));
  return shared_.answers[question] = std::move(tried.result);
}

// In a computation that is dropped once its result has been looked at.
Value Walker::stand_in(const Instruction& instr, InstrId operand, Lie lie) {
  size_t at = 0;
  const InstrId id = b_.op(instr.op, local_shape(instr.shape, lie.leaves, at), {operand});
  return Value{id, std::move(lie.leaves), std::move(lie.open), false};
}

Expected<Value> Walker::loop(const Instruction& instr, const Value& init) {
  const CompId condition = instr.called[0], turn = instr.called[1];
  const bool number = instr.shape.is_tuple() && !world_.alone();
  Lie state{init.leaves, init.open};
  state.open.resize(state.leaves.size());
  for (int round = 0; round < kMostRounds && !world_.alone(); ++round) {
    COLLET_ASSIGN(const Lie tried, result_of(turn, instr.shape, state, number));
    if (!keep_up(state, tried, world_)) break;
  }
  Value in = laid(init, state.leaves, state.open);
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
  if (!number) return Value{id, state.leaves, state.open, false};
  std::vector<InstrId> parts;
  for (size_t i = 0; i < instr.shape.elements().size(); ++i) parts.push_back(b_.get(id, static_cast<int64_t>(i)));
  return Value{b_.tuple(parts), state.leaves, state.open, false};
}

Expected<Value> Walker::conditional(const Instruction& instr, Operands in) {
  Lie result;
  std::vector<CompId> bodies;
  if (trial_) {
    COLLET_ASSIGN(result, result_of(instr.called[0], m_[instr.operand(1)].shape, {in[1].leaves, {}}, false));
    result.open.clear();
    return stand_in(instr, in[1].id, std::move(result));
  }
  for (size_t k = 0; k < instr.called.size(); ++k) {
    const Shape global = m_[instr.operand(k + 1)].shape;
    const CompId from = instr.called[k];
    if (bodies.empty()) {
      COLLET_ASSIGN(const Body first, body(from, global, {in[k + 1].leaves, {}}, false, nullptr, false));
      result = first.result;
      bodies.push_back(first.computation);
    } else {
      COLLET_ASSIGN(const Body other, body(from, global, {in[k + 1].leaves, {}}, false, &result, false));
      bodies.push_back(other.computation);
    }
  }
  size_t at = 0;
  std::vector<InstrId> operands;
  for (const Value& v : in) operands.push_back(v.id);
  const InstrId id = b_.op(instr.op, local_shape(instr.shape, result.leaves, at), operands, instr.attrs, bodies);
  return Value{id, result.leaves, {}, false};
}

}  // namespace collet::hlo::spmd
