// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/loops.h"

#include <algorithm>

#include "hlo/passes/rewriter.h"

namespace collet::hlo {
namespace {

// Largest constant that is compared by value, in bytes. The comparison is repeated for each state element of each loop.
constexpr int64_t kLargestCompared = 1024;

// Returns the integer that `id`, a value in `computation` of the loop, has in every iteration; nothing if that is not
// known.
std::optional<int64_t> steady_value(const Module& module, const Loop& loop, CompId computation, InstrId id) {
  const Instruction& instr = module[id];
  if (!instr.shape.is_scalar() || !is_integer(instr.shape.type())) return std::nullopt;
  if (instr.op == Op::CONSTANT) return module.literal(instr).as_int(0);
  if (const auto i = state_read(module, computation, id); i && is_invariant(module, loop, *i)) {
    const Instruction& first = module[module[loop.init].operand(*i)];
    if (first.op == Op::CONSTANT) return module.literal(first).as_int(0);
  }
  return std::nullopt;
}

Direction mirrored(Direction d) {
  switch (d) {
    case Direction::LT:
      return Direction::GT;
    case Direction::LE:
      return Direction::GE;
    case Direction::GT:
      return Direction::LT;
    case Direction::GE:
      return Direction::LE;
    default:
      return d;
  }
}

// Returns the trip count of `for (i = init; i d limit; i += step)`, with `d` a comparison; nothing if i would wrap
// around, or if the loop would not end.
std::optional<int64_t> trips_of(int64_t init, int64_t step, Direction d, int64_t limit, Type type) {
  __extension__ using Wide = __int128;
  if (step == 0) return std::nullopt;
  Wide distance = 0;
  if (d == Direction::LT || d == Direction::LE) {
    distance = Wide{limit} - init + (d == Direction::LE);
    if (distance <= 0) return 0;
    if (step < 0) return std::nullopt;
  } else if (d == Direction::GT || d == Direction::GE) {
    distance = Wide{init} - limit + (d == Direction::GE);
    if (distance <= 0) return 0;
    if (step > 0) return std::nullopt;
  } else if (d == Direction::NE) {
    distance = Wide{limit} - init;
    if (distance == 0) return 0;
    if (distance % step != 0 || distance / step < 0) return std::nullopt;
    const Wide trips = distance / step;
    return trips > INT32_MAX ? std::nullopt : std::optional<int64_t>(static_cast<int64_t>(trips));
  } else {
    return std::nullopt;
  }
  const Wide size = step < 0 ? -Wide{step} : Wide{step};
  const Wide trips = (distance + size - 1) / size;
  const int bits = type_info(type).bits;
  const Wide top = is_signed(type) ? (Wide{1} << (bits - 1)) - 1 : (Wide{1} << bits) - 1;
  const Wide bottom = is_signed(type) ? -(Wide{1} << (bits - 1)) : 0;
  const Wide last = init + trips * step;
  if (last > top || last < bottom || trips > (Wide{1} << 62)) return std::nullopt;
  return static_cast<int64_t>(trips);
}

}  // namespace

bool LoopFinder::reads_elements_only(CompId computation) {
  const auto [it, fresh] = known_.try_emplace(index_of(computation), true);
  if (!fresh) return it->second;
  const InstrId parameter = module_[computation].parameters.at(0);
  for (InstrId user : module_[computation].order)
    for (InstrId o : module_[user].operands)
      if (o == parameter && module_[user].op != Op::GET_TUPLE_ELEMENT) return it->second = false;
  return true;
}

std::optional<Loop> LoopFinder::find(InstrId id) {
  const Instruction& instr = module_[id];
  if (instr.op != Op::WHILE || !instr.shape.is_tuple()) return std::nullopt;
  const Loop loop{id, instr.called[0], instr.called[1], instr.operand(0), instr.shape.elements().size()};
  for (const Shape& s : instr.shape.elements())
    if (s.is_tuple()) return std::nullopt;
  if (module_[loop.init].op != Op::TUPLE || module_[module_[loop.body].root].op != Op::TUPLE) return std::nullopt;
  if (!reads_elements_only(loop.condition) || !reads_elements_only(loop.body)) return std::nullopt;
  return loop;
}

std::optional<size_t> state_read(const Module& module, CompId computation, InstrId id) {
  const Instruction& instr = module[id];
  if (instr.op != Op::GET_TUPLE_ELEMENT || instr.operand(0) != module[computation].parameters.at(0))
    return std::nullopt;
  return static_cast<size_t>(instr.as<TupleIndexAttrs>().index);
}

bool is_invariant(const Module& module, const Loop& loop, size_t i) {
  const InstrId next = module[module[loop.body].root].operand(i);
  if (const auto read = state_read(module, loop.body, next)) return *read == i;
  const Instruction& first = module[module[loop.init].operand(i)];
  return module[next].op == Op::CONSTANT && first.op == Op::CONSTANT && first.shape.byte_size() <= kLargestCompared &&
         module.literal(module[next]) == module.literal(first);
}

InstrId own_root(Module& module, CompId c) {
  const InstrId root = module[c].root;
  for (InstrId id : module[c].order) {
    const auto& operands = module[id].operands;
    if (std::find(operands.begin(), operands.end(), root) == operands.end()) continue;
    const std::vector<InstrId> elements(module[root].operands.begin(), module[root].operands.end());
    const InstrId own = module.append(c, Op::TUPLE, module[root].shape, elements);
    module[own].extras = without_predecessors(module, module[root].extras);
    return module[c].root = own;
  }
  return root;
}

std::vector<uint32_t> count_callers(const Module& module) {
  std::vector<uint32_t> out(module.computation_limit());
  for (CompId c : module.computations())
    for (InstrId id : module[c].order)
      for (CompId callee : module[id].called) ++out[index_of(callee)];
  return out;
}

std::optional<TripCount> find_trip_count(const Module& module, const Loop& loop) {
  const Instruction& test = module[module[loop.condition].root];
  if (test.op != Op::COMPARE || !module[test.operand(0)].shape.is_scalar()) return std::nullopt;
  for (const size_t side : {0, 1}) {
    const auto induction = state_read(module, loop.condition, test.operand(side));
    const auto limit = steady_value(module, loop, loop.condition, test.operand(1 - side));
    if (!induction || !limit || is_invariant(module, loop, *induction)) continue;
    const Instruction& first = module[module[loop.init].operand(*induction)];
    const Type type = first.shape.type();
    if (first.op != Op::CONSTANT || !is_integer(type) || type == Type::U64) continue;
    const Instruction& next = module[module[module[loop.body].root].operand(*induction)];
    if (next.op != Op::ADD && next.op != Op::SUBTRACT) continue;
    std::optional<int64_t> step;
    for (const size_t k : {0, 1}) {
      if (next.op == Op::SUBTRACT && k == 1) break;
      const auto read = state_read(module, loop.body, next.operand(k));
      if (read && *read == *induction) step = steady_value(module, loop, loop.body, next.operand(1 - k));
      if (step) break;
    }
    if (!step || *step == INT64_MIN) continue;
    if (next.op == Op::SUBTRACT) step = -*step;
    const Direction d = test.as<CompareAttrs>().direction;
    const int64_t init = module.literal(first).as_int(0);
    const auto trips = trips_of(init, *step, side == 0 ? d : mirrored(d), *limit, type);
    if (trips) return TripCount{*trips, *induction, init, *step};
  }
  return std::nullopt;
}

}  // namespace collet::hlo
