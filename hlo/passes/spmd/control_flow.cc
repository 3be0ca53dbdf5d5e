// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "hlo/passes/spmd/materializer.h"

// Materialisation of control flow: writes the computations of loops and branches on tiles. The state of a loop and the
// results of a conditional have one sharding each in the sharding table.

namespace collet::hlo::spmd {

// Writes the computation on tiles for `from`, which has one parameter. With `takes_partition_id` the partition's number
// is passed as an additional last element of its argument, a tuple, and of its result if the result is the state of a
// loop.
Expected<CompId> Materializer::body(CompId from, const Shape& argument,
                                    std::span<const ArraySharding> argument_shardings, bool takes_partition_id,
                                    const std::vector<ArraySharding>* result, const Shape& result_shape) {
  const CompId out = m_.add_computation(
      m_.arena().string(std::string(m_[from].name) + ".tile." + std::to_string(m_.computation_limit())));
  size_t at = 0;
  const Shape local = local_shape(argument, argument_shardings, at);
  Shape taken = local;
  if (takes_partition_id) {
    std::vector<Shape> elements(local.elements().begin(), local.elements().end());
    elements.push_back(Shape::array(Type::U32, {}));
    taken = Shape::tuple(std::move(elements));
  }
  TileBuilder tiles(m_, out, context_.replicas, context_.channels, context_.index_type);
  Builder& b = tiles.builder();
  TiledValue value{m_.append_parameter(out, 0, taken), {argument_shardings.begin(), argument_shardings.end()}, false};
  if (takes_partition_id) {
    std::vector<InstrId> parts;
    for (size_t i = 0; i < local.elements().size(); ++i) parts.push_back(b.get(value.id, static_cast<int64_t>(i)));
    tiles.set_partition_id(b.get(value.id, static_cast<int64_t>(parts.size())));
    value.id = b.tuple(parts);
  }
  const Region* region = context_.regions.of(from);
  Materializer materializer(context_, tiles, region ? region->groups : groups_);
  COLLET_ASSIGN(TiledValue root, materializer.run(from, {value}));
  if (root.manual)
    return unimplemented("the result of computation " + std::string(m_[from].name) +
                         " differs from one partition to another");
  if (result) root = materializer.reshard(std::move(root), result_shape, *result);
  if (result && takes_partition_id) {
    std::vector<InstrId> parts;
    for (size_t i = 0; i + 1 < taken.elements().size(); ++i) parts.push_back(b.get(root.id, static_cast<int64_t>(i)));
    parts.push_back(tiles.partition_id());
    root.id = b.tuple(parts);
  }
  COLLET_TRY(b.status());
  m_[out].root = root.id;
  return out;
}

Expected<TiledValue> Materializer::call(InstrId id, const Instruction& instr, const Operands& in) {
  if (context_.regions.is_copied(id)) return copied(instr, in);
  const Region* region = context_.regions.of(instr.called[0]);
  return Materializer(context_, t_, region ? region->groups : groups_).run(instr.called[0], in);
}

Expected<TiledValue> Materializer::loop(InstrId id, const Instruction& instr, const TiledValue& init) {
  const std::vector<ArraySharding>& state = shardings(id);
  const bool number = instr.shape.is_tuple() && !groups_.all_apart();
  TiledValue in = reshard(init, instr.shape, state);
  COLLET_ASSIGN(const CompId again,
                body(instr.called[0], instr.shape, state, number, nullptr, m_[m_[instr.called[0]].root].shape));
  COLLET_ASSIGN(const CompId next, body(instr.called[1], instr.shape, state, number, &state, instr.shape));
  const size_t n = instr.shape.is_tuple() ? instr.shape.elements().size() : 0;
  if (number) {
    std::vector<InstrId> parts;
    for (size_t i = 0; i < n; ++i) parts.push_back(b_.get(in.id, static_cast<int64_t>(i)));
    parts.push_back(t_.partition_id());
    in.id = b_.tuple(parts);
  }
  COLLET_TRY(b_.status());
  const InstrId loop = b_.op(Op::WHILE, Shape(b_.shape(in.id)), {in.id}, nullptr, std::array{again, next});
  if (!number) return TiledValue{loop, state, false};
  std::vector<InstrId> parts;
  for (size_t i = 0; i < n; ++i) parts.push_back(b_.get(loop, static_cast<int64_t>(i)));
  return TiledValue{b_.tuple(parts), state, false};
}

Expected<TiledValue> Materializer::conditional(InstrId id, const Instruction& instr, const Operands& in) {
  const std::vector<ArraySharding>& result = shardings(id);
  std::vector<CompId> bodies;
  std::vector<InstrId> operands{replicate(in[0], m_[instr.operand(0)].shape).id};
  for (size_t k = 0; k < instr.called.size(); ++k) {
    const InstrId argument = instr.operand(k + 1);
    COLLET_ASSIGN(const CompId branch,
                  body(instr.called[k], m_[argument].shape, in[k + 1].leaves, false, &result, instr.shape));
    bodies.push_back(branch);
    operands.push_back(in[k + 1].id);
  }
  size_t at = 0;
  const InstrId out = b_.op(instr.op, local_shape(instr.shape, result, at), operands, instr.attrs, bodies);
  return TiledValue{out, result, false};
}

}  // namespace collet::hlo::spmd
