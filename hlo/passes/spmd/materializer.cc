// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/spmd/materializer.h"

#include <algorithm>
#include <utility>

#include "hlo/ir/unsigned_type.h"
#include "hlo/ops/eval/body.h"
#include "hlo/program/leaves.h"

namespace collet::hlo::spmd {
namespace {

std::vector<ArraySharding> replicated_leaves(const Shape& shape) {
  std::vector<Shape> shapes;
  append_leaf_shapes(shape, shapes);
  std::vector<ArraySharding> out;
  for (const Shape& leaf : shapes) out.emplace_back(static_cast<size_t>(leaf.is_array() ? leaf.rank() : 0));
  return out;
}

// Returns the integer type of the same width. If at most one term of a sum is not zero, the sum is computed on
// integers, which keeps the bits of that term.
Type integer_for(Type type) {
  return type == Type::PRED ? Type::U8 : unsigned_type(type_info(type).bits);
}

}  // namespace

Shape local_shape(const Shape& shape, std::span<const ArraySharding> leaves, size_t& at) {
  if (!shape.is_tuple()) return tile_shape(shape, leaves[at++]);
  std::vector<Shape> elements;
  for (const Shape& element : shape.elements()) elements.push_back(local_shape(element, leaves, at));
  return Shape::tuple(std::move(elements));
}

Expected<TiledValue> Materializer::run(CompId from, std::vector<TiledValue> arguments) {
  std::unordered_map<uint32_t, TiledValue> values;
  const std::vector<InstrId> order = m_[from].order;
  for (InstrId id : order) {
    const Instruction instr = m_[id];  // a copy, because adding instructions invalidates references
    if (instr.op == Op::PARAMETER) {
      values[index_of(id)] = arguments[static_cast<size_t>(instr.as<ParameterAttrs>().number)];
      continue;
    }
    b_.set_origin(&instr);
    TiledValue value;
    if (instr.op == Op::GET_TUPLE_ELEMENT) {  // avoids copying all shardings of the tuple
      value = element(instr, values.at(index_of(instr.operand(0))));
    } else {
      Operands in;
      for (InstrId operand : instr.operands) in.push_back(values.at(index_of(operand)));
      COLLET_ASSIGN(value, instruction(id, instr, in));
    }
    if (!value.manual) value = reshard(std::move(value), instr.shape, shardings(id));
    COLLET_TRY(b_.status());
    values[index_of(id)] = std::move(value);
  }
  return values.at(index_of(m_[from].root));
}

TiledValue Materializer::reshard(TiledValue value, const Shape& shape, std::span<const ArraySharding> to) {
  if (value.leaves.size() != to.size() || std::equal(to.begin(), to.end(), value.leaves.begin())) return value;
  if (!shape.is_tuple()) {
    value.id = t_.reshard(value.id, shape, value.leaves[0], to[0], groups_);
    value.leaves[0] = to[0];
    return value;
  }
  std::vector<InstrId> parts;
  size_t at = 0;
  for (size_t i = 0; i < shape.elements().size(); ++i) {
    const auto n = static_cast<size_t>(shape.element(i).leaf_count());
    TiledValue part{b_.get(value.id, static_cast<int64_t>(i)), {}, false};
    part.leaves.assign(value.leaves.begin() + static_cast<std::ptrdiff_t>(at),
                       value.leaves.begin() + static_cast<std::ptrdiff_t>(at + n));
    parts.push_back(reshard(std::move(part), shape.element(i), to.subspan(at, n)).id);
    at += n;
  }
  return {b_.tuple(parts), {to.begin(), to.end()}, value.manual};
}

Expected<TiledValue> Materializer::instruction(InstrId id, const Instruction& instr, const Operands& in) {
  const bool manual = std::any_of(in.begin(), in.end(), [](const TiledValue& v) { return v.manual; });
  switch (instr.op) {
    case Op::TUPLE:
      return tuple(instr, in);
    case Op::CUSTOM_CALL:
      return custom_call(id, instr, in);
    case Op::CALL:
      return call(id, instr, in);
    case Op::WHILE:
    case Op::CONDITIONAL:
      if (context_.regions.is_copied(id)) break;
      return instr.op == Op::WHILE ? loop(id, instr, in[0]) : conditional(id, instr, in);
    case Op::PARTITION_ID: {
      TiledValue out = copied(instr, in);
      out.manual = context_.regions.is_manual(id);
      return out;
    }
    default:
      break;
  }
  if (!manual) return plain(id, instr, in);
  TiledValue out = replicated(instr, in);
  out.manual = true;
  return out;
}

TiledValue Materializer::copied(const Instruction& instr, const Operands& in) {
  std::vector<InstrId> operands;
  for (const TiledValue& v : in) operands.push_back(v.id);
  const std::vector<CompId> called(instr.called.begin(), instr.called.end());
  return {b_.op(instr.op, instr.shape, operands, instr.attrs, called), replicated_leaves(instr.shape), false};
}

// Lets every partition compute the whole result, which is correct for every op.
TiledValue Materializer::replicated(const Instruction& instr, const Operands& in) {
  Operands whole;
  for (size_t k = 0; k < in.size(); ++k) whole.push_back(replicate(in[k], m_[instr.operand(k)].shape));
  return copied(instr, whole);
}

TiledValue Materializer::replicate(const TiledValue& value, const Shape& shape) {
  return value.manual ? value : reshard(value, shape, replicated_leaves(shape));
}

Expected<TiledValue> Materializer::plain(InstrId id, const Instruction& instr, const Operands& in) {
  const auto is_dynamic = [&](InstrId operand) { return m_[operand].shape.has_dynamic(); };
  if (instr.shape.has_dynamic() || std::any_of(instr.operands.begin(), instr.operands.end(), is_dynamic))
    return replicated(instr, in);
  if (is_collective(instr.op)) return collective(id, instr, in);
  switch (instr.op) {
    case Op::INFEED:
    case Op::OUTFEED:
      // Without such a sharding each partition has a feed of its own.
      if (const auto device = context_.regions.one_device(instr); device && groups_.all_together())
        return alone(instr, in, *device);
      break;
    case Op::OPT_BARRIER: {
      if (in.size() != 1) break;
      const TiledValue value = reshard(in[0], instr.shape, shardings(id));
      size_t at = 0;
      return TiledValue{b_.op(instr.op, local_shape(instr.shape, value.leaves, at), {value.id}, instr.attrs),
                        value.leaves, false};
    }
    default:
      break;
  }
  const bool terms = instr.op == Op::SCATTER && shardings(id)[0].unreduced.is_split();
  if (auto rule = sharding_rule(m_, instr, terms)) return by_rule(id, instr, *rule, in);
  return replicated(instr, in);
}

Expected<TiledValue> Materializer::by_rule(InstrId id, const Instruction& instr, const ShardingRule& rule,
                                           const Operands& in) {
  const std::vector<ArraySharding>& wanted = shardings(id);
  std::vector<ArraySharding> given;
  for (const TiledValue& v : in) given.push_back(v.leaves[0]);
  const auto is_replicated = [](const ArraySharding& s) { return s.is_replicated(); };
  if (std::all_of(given.begin(), given.end(), is_replicated) &&
      std::all_of(wanted.begin(), wanted.end(), is_replicated))
    return copied(instr, in);
  const OpStrategy strategy = choose_strategy(m_, instr, rule, given, wanted, groups_);
  const auto is_split = [](const DimensionSharding& d) { return d.is_split(); };
  if (std::none_of(strategy.factors.begin(), strategy.factors.end(), is_split) &&
      std::all_of(strategy.results.begin(), strategy.results.end(), is_replicated))
    return replicated(instr, in);

  std::vector<InstrId> operands;
  for (size_t k = 0; k < in.size(); ++k)
    operands.push_back(t_.reshard(in[k].id, m_[instr.operand(k)].shape, given[k], strategy.operands[k], groups_));
  if (strategy.partial.is_split())
    for (const size_t k : rule.once) operands[k] = t_.on_first_tile(operands[k], strategy.partial);
  size_t at = 0;
  const Shape shape = local_shape(instr.shape, strategy.results, at);
  COLLET_TRY(b_.status());
  TiledOp op{m_, t_, b_, instr, rule, strategy, groups_, std::move(operands), shape};
  TiledValue out{materialize_op(op), strategy.results, false};
  COLLET_TRY(b_.status());
  if (!strategy.partial.is_split()) return out;

  // The tiles hold partial results. They are combined here, unless the sharding leaves the result unreduced.
  bool selected = false;
  for (size_t f = 0; f < rule.factors.size(); ++f)
    selected = selected || (rule.factors[f].kind == ShardingRule::Kind::Selected && strategy.factors[f].is_split());
  if (rule.adds(m_) && wanted[0].unreduced.is_split()) return out;
  const ArraySharding to(wanted[0].dimensions);
  if (selected) {
    const Type type = instr.shape.type(), bits = integer_for(type);
    const bool number = is_integer(type);
    if (!number) out.id = type == Type::PRED ? b_.convert(out.id, bits) : b_.bitcast_convert(out.id, bits);
    const Shape whole = Shape::array(number ? type : bits, instr.shape.dims());
    out.id = t_.reshard(out.id, whole, out.leaves[0], to, groups_);
    if (!number) out.id = type == Type::PRED ? b_.convert(out.id, type) : b_.bitcast_convert(out.id, type);
  } else {
    out.id = t_.reshard(out.id, instr.shape, out.leaves[0], to, groups_, rule.combine);
  }
  out.leaves = {to};
  return out;
}

TiledValue Materializer::tuple(const Instruction& instr, const Operands& in) {
  TiledValue out;
  std::vector<InstrId> parts;
  // Either all elements of a tuple are manual, or none is.
  out.manual = std::any_of(in.begin(), in.end(), [](const TiledValue& v) { return v.manual; });
  for (size_t k = 0; k < in.size(); ++k) {
    const TiledValue v = out.manual ? replicate(in[k], m_[instr.operand(k)].shape) : in[k];
    parts.push_back(v.id);
    out.leaves.insert(out.leaves.end(), v.leaves.begin(), v.leaves.end());
  }
  out.id = b_.tuple(parts);
  return out;
}

TiledValue Materializer::element(const Instruction& instr, const TiledValue& in) {
  const auto index = static_cast<size_t>(instr.as<TupleIndexAttrs>().index);
  const Shape& shape = m_[in.id].shape;
  size_t first = index;
  if (in.leaves.size() != shape.elements().size()) {
    first = 0;
    for (size_t i = 0; i < index; ++i) first += static_cast<size_t>(shape.element(i).leaf_count());
  }
  const auto n = static_cast<size_t>(shape.element(index).leaf_count());
  TiledValue out{InstrId::None, {}, in.manual};
  out.leaves.assign(in.leaves.begin() + static_cast<std::ptrdiff_t>(first),
                    in.leaves.begin() + static_cast<std::ptrdiff_t>(first + n));
  out.id = b_.get(in.id, static_cast<int64_t>(index));
  return out;
}

// Writes a collective that the program itself has, in a manual region, on the tiles of its operands. Its participants have the same
// tile with respect to mesh axes that are not manual.
Expected<TiledValue> Materializer::collective(InstrId id, const Instruction& instr, const Operands& in) {
  const std::vector<ArraySharding>& wanted = shardings(id);
  if (wanted.size() != in.size() ||
      std::any_of(in.begin(), in.end(), [](const TiledValue& v) { return v.leaves.size() != 1; }))
    return replicated(instr, in);
  const bool alike = instr.op == Op::ALL_TO_ALL && instr.as<AllToAllAttrs>().dimension.empty();
  TiledValue out;
  std::vector<InstrId> operands;
  for (size_t k = 0; k < in.size(); ++k) {
    const ArraySharding to(wanted[alike ? 0 : k].dimensions);
    operands.push_back(t_.reshard(in[k].id, m_[instr.operand(k)].shape, in[k].leaves[0], to, groups_));
    out.leaves.push_back(to);
  }
  size_t at = 0;
  const std::vector<CompId> called(instr.called.begin(), instr.called.end());
  out.id = b_.op(instr.op, local_shape(instr.shape, out.leaves, at), operands, instr.attrs, called);
  return out;
}

}  // namespace collet::hlo::spmd
