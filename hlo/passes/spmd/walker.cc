// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/spmd/walker.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "hlo/ops/eval/body.h"
#include "hlo/passes/rewriter.h"

namespace collet::hlo::spmd {
namespace {

// Of computations in computations: each takes a few kilobytes of the stack.
constexpr int kDeepest = 200;

// The biggest first: who moves least decides.
std::vector<size_t> by_size(const Module& module, const Instruction& instr) {
  std::vector<size_t> order(instr.operands.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return module[instr.operand(a)].shape.element_count() > module[instr.operand(b)].shape.element_count();
  });
  return order;
}

// The parts of a dimension's column that fall to its factors. Empty where it cannot be cut that way.
std::vector<Column> distribute(const Rule& rule, const Rule::Dimension& factors, const Column& column) {
  std::vector<Column> out;
  Column rest = column;
  for (int f : factors) {
    const int64_t size = rule.factors[static_cast<size_t>(f)].size;
    if (rest.whole()) {
      out.emplace_back();
    } else if (size % rest.count == 0) {
      out.push_back(std::exchange(rest, Column()));
    } else if (rest.count % size == 0) {
      out.push_back(high_part(rest, rest.count / size));
      rest = low_part(rest, rest.count / size);
    } else {
      return {};
    }
  }
  return rest.whole() ? out : std::vector<Column>();
}

Column combined(const Rule::Dimension& factors, const Tiling& split) {
  Column out;
  for (int f : factors) out = joined(out, split[static_cast<size_t>(f)]);
  return out;
}

Tiling tiling_of(const Rule::Array& array, const Tiling& split) {
  Tiling out;
  for (const Rule::Dimension& factors : array) out.push_back(combined(factors, split));
  return out;
}

// Where an operand lies as the result is to lie.
Tiling agreed(const Rule& rule, std::span<const Value> in, const Tiling& asked) {
  Tiling out(rule.factors.size());
  if (rule.results.size() != 1 || rule.results[0].size() != asked.size()) return out;
  Tiling given = out;
  const auto put = [&](const Rule::Array& array, const Tiling& tiling, const auto& use) {
    for (size_t d = 0; d < array.size(); ++d) {
      const std::vector<Column> parts = distribute(rule, array[d], tiling[d]);
      for (size_t i = 0; i < parts.size(); ++i)
        if (!parts[i].whole()) use(static_cast<size_t>(array[d][i]), parts[i]);
    }
  };
  put(rule.results[0], asked, [&](size_t f, const Column& c) { given[f] = c; });
  for (size_t k = 0; k < in.size(); ++k)
    put(rule.operands[k], in[k].leaves[0], [&](size_t f, const Column& c) {
      if (given[f] == c) out[f] = c;
    });
  return out;
}

// A factor may only be split when those before it in a dimension are split to the end.
bool drop_inner(const Rule& rule, const std::vector<Rule::Array>& arrays, Tiling& split) {
  bool changed = false;
  for (const Rule::Array& array : arrays)
    for (const Rule::Dimension& factors : array) {
      bool open = true;
      for (int f : factors) {
        Column& c = split[static_cast<size_t>(f)];
        if (!open && !c.whole()) {
          c = Column();
          changed = true;
        }
        open &= c.count == rule.factors[static_cast<size_t>(f)].size;
      }
    }
  return changed;
}

}  // namespace

Shape local_shape(const Shape& shape, std::span<const Tiling> leaves, size_t& at) {
  if (shape.is_tuple()) {
    std::vector<Shape> elements;
    for (const Shape& element : shape.elements()) elements.push_back(local_shape(element, leaves, at));
    return Shape::tuple(std::move(elements));
  }
  const Tiling& tiling = leaves[at++];
  if (!shape.is_array() || is_whole(tiling)) return shape.without_layout();
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  for (size_t d = 0; d < dims.size(); ++d) dims[d] /= tiling[d].count;
  return Shape::array(shape.type(), dims);
}

std::vector<bool> find_markers(const Module& module) {
  std::vector<bool> out(module.computation_limit());
  for (CompId c : post_order(module))
    for (InstrId id : module[c].order) {
      const Instruction& instr = module[id];
      bool marks = false;
      if (instr.op == Op::CUSTOM_CALL) {
        const std::string_view target = instr.as<CustomCallAttrs>().target;
        marks = target.starts_with("xla.sdy.") || target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape";
      }
      for (CompId called : instr.called) marks = marks || out[index_of(called)];
      if (marks) out[index_of(c)] = true;
    }
  return out;
}

Expected<Value> Walker::walk(CompId from, std::vector<Value> arguments) {
  const std::vector<InstrId> order = m_[from].order;
  if (m_.instruction_limit() + order.size() > shared_.most)
    return resource_exhausted("partitioning makes more than " + std::to_string(shared_.most) + " instructions");
  const struct Level {
    int& depth;
    explicit Level(int& d) : depth(d) { ++depth; }
    ~Level() { --depth; }
  } level(shared_.depth);
  if (level.depth > kDeepest)
    return unimplemented("partitioning computations that call each other " + std::to_string(kDeepest) + " deep");
  std::unordered_map<uint32_t, Value> values;
  for (InstrId id : order) {
    const Instruction& instr = m_[id];
    if (instr.op != Op::CUSTOM_CALL || instr.operands.empty()) continue;
    const auto target = instr.as<CustomCallAttrs>().target;
    if (target != "xla.sdy.LocalToGlobalShape") continue;
    for (InstrId operand : instr.operands) {
      if (m_[operand].op == Op::GET_TUPLE_ELEMENT) operand = m_[operand].operand(0);
      if (m_[operand].op == Op::CALL) markers_[index_of(operand)] = id;
    }
  }
  static const Wish kNothing;
  const std::unordered_map<uint32_t, Wish> asked = asked_of(order);
  std::unordered_map<uint32_t, Value> sums_made;  // of what is open, for all who want it summed
  const auto sum_of = [&](InstrId id, const Value& value) {
    if (std::all_of(value.open.begin(), value.open.end(), [](const Column& c) { return c.whole(); })) return value;
    const auto [it, fresh] = sums_made.try_emplace(index_of(id));
    if (fresh) it->second = settled(value);
    return it->second;
  };
  for (InstrId id : order) {
    const Instruction instr = m_[id];  // instructions move as more are made
    if (instr.op == Op::PARAMETER) {
      values[index_of(id)] = arguments[static_cast<size_t>(instr.as<ParameterAttrs>().number)];
      continue;
    }
    b_.set_origin(&instr);
    if (instr.op == Op::GET_TUPLE_ELEMENT) {  // without a copy of the tuple's tilings
      Value value = element(instr, values.at(index_of(instr.operand(0))));
      COLLET_TRY(b_.status());
      values[index_of(id)] = constrained(instr, std::move(value));
      continue;
    }
    const auto asks = asked.find(index_of(id));
    const Wish& wish = asks == asked.end() ? kNothing : asks->second;
    Operands in;
    for (InstrId operand : instr.operands) in.push_back(values.at(index_of(operand)));
    const bool passes =
        instr.op == Op::TUPLE || instr.op == Op::CUSTOM_CALL || instr.op == Op::CALL || instr.op == Op::WHILE;
    if (!passes && !stays_open(instr, in, wish.open))
      for (size_t k = 0; k < in.size(); ++k) in[k] = sum_of(instr.operand(k), in[k]);
    COLLET_ASSIGN(Value value, one(id, instr, in, wish));
    COLLET_TRY(b_.status());
    values[index_of(id)] = constrained(instr, std::move(value));
  }
  return values.at(index_of(m_[from].root));
}

Value Walker::constrained(const Instruction& instr, Value value) {
  if (value.manual || !instr.extras || instr.op == Op::CUSTOM_CALL) return value;
  if (instr.shape.is_array()) {
    const auto wish = wanted(instr, instr.shape, 0, value.leaves[0]);
    return wish ? granted(std::move(value), *wish) : value;
  }
  if (instr.extras->sharding == nullptr) return value;
  std::vector<Shape> shapes;
  std::vector<Tiling> to = value.leaves;
  std::vector<Column> open(to.size());
  const auto collect = [&](const auto& self, const Shape& shape) -> void {
    if (!shape.is_tuple()) return shapes.push_back(shape);
    for (const Shape& element : shape.elements()) self(self, element);
  };
  collect(collect, instr.shape);
  for (size_t i = 0; i < shapes.size(); ++i)
    if (auto wish = wanted(instr, shapes[i], i, value.leaves[i])) {
      to[i] = std::move(wish->tiling);
      open[i] = std::move(wish->open);
    }
  return laid(std::move(value), to, open);
}

std::optional<Wish> Walker::stated(const Instruction& instr, const Shape& leaf, size_t index,
                                   std::vector<bool>* open) const {
  if (!instr.extras || !leaf.is_array()) return std::nullopt;
  const auto rank = static_cast<size_t>(leaf.rank());
  std::optional<Tiling> out;
  Column sums;
  open->assign(rank, false);
  for (const FrontendAttribute& a : instr.extras->frontend_attributes) {
    if (a.name != "xla.sdy.sharding") continue;
    const auto named = parse_named_sharding(a.value);
    if (!named || named->dimensions.size() != rank) continue;
    const auto where = mesh(*named);
    if (!where.ok()) continue;
    const auto parts = resolve_axes(*named, *where);
    const std::vector<bool> all(where->axes.size(), true);
    if (parts) out = from_axes(*where, *parts, all, world_.partitions());
    if (const auto unreduced = resolve_unreduced(*named, *where); out && unreduced)
      if (const auto column = from_axes(*where, {*unreduced}, all, world_.partitions())) sums = (*column)[0];
    for (size_t d = 0; d < rank; ++d) (*open)[d] = named->dimensions[d].open;
  }
  if (const Sharding* s = instr.extras->sharding; !out && s) {
    if (s->kind == Sharding::Kind::Tuple) s = index < s->elements.size() ? &s->elements[index] : nullptr;
    if (s) out = from_sharding(*s, rank, world_.partitions(), &sums);
  }
  if (!out) return std::nullopt;
  return Wish{std::move(*out), std::move(sums)};
}

std::optional<Wish> Walker::wanted(const Instruction& instr, const Shape& leaf, size_t index, const Tiling& now) const {
  std::vector<bool> open;
  auto out = leaf.has_dynamic() ? std::nullopt : stated(instr, leaf, index, &open);
  if (!out) return std::nullopt;
  Tiling& tiling = out->tiling;
  for (size_t d = 0; d < tiling.size(); ++d) {
    Column& c = tiling[d];
    if (leaf.dim(static_cast<int>(d)) % c.count) c = Column();
    if (!open[d] || !c.whole()) continue;
    c = now[d];
    if (!fits(tiling, world_)) c = Column();
  }
  Tiling all = tiling;
  all.push_back(out->open);
  if (!fits(all, world_)) return std::nullopt;
  return out;
}

Expected<Value> Walker::one(InstrId id, const Instruction& instr, const Operands& in, const Wish& asked) {
  const bool manual = std::any_of(in.begin(), in.end(), [](const Value& v) { return v.manual; });
  switch (instr.op) {
    case Op::TUPLE:
      return tuple(instr, in);
    case Op::CUSTOM_CALL:
      return custom_call(instr, in);
    case Op::CALL:
      return call(id, instr, in);
    case Op::WHILE:
    case Op::CONDITIONAL: {
      const bool marked =
          std::any_of(instr.called.begin(), instr.called.end(), [&](CompId c) { return holds_markers(c); });
      if (manual && marked)
        return unimplemented("'" + std::string(instr.name) +
                             "': what each partition does for itself goes back to whole arrays inside of control flow");
      if (manual || (world_.alone() && !marked)) break;
      return instr.op == Op::WHILE ? loop(instr, in[0]) : conditional(instr, in);
    }
    case Op::PARTITION_ID: {
      // Different on each partition, so what is made of it is no array of the whole program.
      Value out = copied(instr, in);
      out.manual = world_.together();
      return out;
    }
    default:
      break;
  }
  if (!manual) return plain(instr, in, asked);
  Operands all;
  for (const Value& v : in) all.push_back(made_whole(v));
  Value out = copied(instr, all);
  out.manual = true;
  return out;
}

// The op as it stands, on operands that are whole, or that are each partition's own affair.
Value Walker::copied(const Instruction& instr, const Operands& in) {
  std::vector<InstrId> operands;
  for (const Value& v : in) operands.push_back(v.id);
  const std::vector<CompId> called(instr.called.begin(), instr.called.end());
  return whole_value(b_.op(instr.op, instr.shape, operands, instr.attrs, called), instr.shape);
}

Value Walker::whole_value(InstrId id, const Shape& shape) {
  Value out{id, {}, {}, false};
  const auto collect = [&](const auto& self, const Shape& part) -> void {
    if (!part.is_tuple()) {
      out.leaves.push_back(whole(part.is_array() ? static_cast<size_t>(part.rank()) : 0));
      return;
    }
    for (const Shape& element : part.elements()) self(self, element);
  };
  collect(collect, shape);
  return out;
}

// Right for every op: everybody computes all of it.
Value Walker::replicated(const Instruction& instr, Operands in) {
  for (Value& v : in) v = made_whole(std::move(v));
  return copied(instr, in);
}

Value Walker::made_whole(Value value) {
  if (value.manual) return value;
  value = settled(std::move(value));
  std::vector<Tiling> to;
  for (const Tiling& t : value.leaves) to.push_back(whole(t.size()));
  return reshard(value, to);
}

Expected<Value> Walker::plain(const Instruction& instr, Operands in, const Wish& asked) {
  bool split = false;
  for (const Value& v : in) {
    for (const Tiling& t : v.leaves) split |= !is_whole(t);
    for (const Column& c : v.open) split |= !c.whole();
  }
  if (!split) return copied(instr, in);
  const auto is_dynamic = [&](InstrId id) { return m_[id].shape.has_dynamic(); };
  if (instr.shape.has_dynamic() || std::any_of(instr.operands.begin(), instr.operands.end(), is_dynamic))
    return replicated(instr, std::move(in));
  switch (instr.op) {
    case Op::ALL_REDUCE:
    case Op::ALL_GATHER:
    case Op::REDUCE_SCATTER:
    case Op::ALL_TO_ALL:
    case Op::COLLECTIVE_PERMUTE:
    case Op::COLLECTIVE_BROADCAST:
      return collective(instr, std::move(in));
    case Op::OPT_BARRIER: {
      size_t at = 0;
      const InstrId id = b_.op(instr.op, local_shape(instr.shape, in[0].leaves, at), {in[0].id}, instr.attrs);
      return Value{id, in[0].leaves, {}, false};
    }
    default:
      break;
  }
  if (auto rule = rule_of(m_, instr, !asked.open.whole()))
    return by_rule(instr, std::move(in), std::move(*rule), asked);
  return replicated(instr, std::move(in));
}

Expected<Value> Walker::by_rule(const Instruction& instr, Operands in, Rule rule, const Wish& asked) {
  Column open;
  for (const Value& v : in)
    if (open.whole()) open = open_of(v, 0);
  const World alike = within(world_, open);
  Tiling split = agreed(rule, in, asked.tiling);
  if (!fits(split, alike)) split.assign(split.size(), Column());
  for (const size_t k : by_size(m_, instr)) {
    const Tiling& has = in[k].leaves[0];
    for (size_t d = 0; d < has.size(); ++d) {
      if (has[d].whole()) continue;
      const std::vector<Column> parts = distribute(rule, rule.operands[k][d], has[d]);
      for (size_t i = 0; i < parts.size(); ++i) {
        Column& c = split[static_cast<size_t>(rule.operands[k][d][i])];
        if (!c.whole() || parts[i].whole()) continue;
        c = parts[i];
        if (!fits(split, alike)) c = Column();
      }
    }
  }
  while (drop_inner(rule, rule.operands, split) || drop_inner(rule, rule.results, split)) {
  }
  if (is_whole(split) && open.whole()) return replicated(instr, std::move(in));
  std::vector<size_t> across;
  Column partial;
  for (size_t f = 0; f < split.size(); ++f) {
    if (!rule.factors[f].reduced || split[f].whole()) continue;
    across.push_back(f);
    partial = joined(partial, split[f]);
  }
  std::vector<Column> terms(in.size());
  if (const auto through = open.whole() ? std::nullopt : terms_of(m_, instr, opened(in)))
    for (const size_t k : *through) terms[k] = open;
  for (size_t k = 0; k < in.size(); ++k) in[k] = granted(in[k], {tiling_of(rule.operands[k], split), terms[k]});
  if (!partial.whole())
    for (const size_t k : rule.once) in[k].id = e_.only_first(in[k].id, partial);

  Value out;
  for (const Rule::Array& array : rule.results) out.leaves.push_back(tiling_of(array, split));
  size_t at = 0;
  const Shape shape = local_shape(instr.shape, out.leaves, at);
  std::vector<InstrId> operands;
  for (const Value& v : in) operands.push_back(v.id);
  COLLET_TRY(b_.status());
  const Shape first = operands.empty() ? Shape() : b_.shape(operands[0]);
  const std::vector<CompId> called(instr.called.begin(), instr.called.end());
  out.id = b_.op(instr.op, shape, operands,
                 local_attributes(m_, instr, first, shape.is_tuple() ? shape.element(0) : shape), called);
  if (!asked.open.whole() && !across.empty() &&
      (rule.combine == CompId::None || eval::single_op(m_, rule.combine) == Op::ADD)) {
    open = joined(open, partial);
  } else if (!across.empty()) {
    const CompId combine = rule.combine != CompId::None ? rule.combine : b_.combiner(Op::ADD, shape.type());
    out.id = e_.all_reduce(out.id, combine, split, across, alike);
  }
  if (!open.whole()) out.open = {open};
  return out;
}

Value Walker::tuple(const Instruction&, const Operands& in) {
  Value out;
  std::vector<InstrId> parts;
  // A tuple is each partition's own affair as a whole or not at all.
  const bool manual = std::any_of(in.begin(), in.end(), [](const Value& v) { return v.manual; });
  for (const Value& operand : in) {
    const Value v = manual ? made_whole(operand) : operand;
    parts.push_back(v.id);
    for (size_t i = 0; i < v.leaves.size(); ++i) out.open.push_back(open_of(v, i));
    out.leaves.insert(out.leaves.end(), v.leaves.begin(), v.leaves.end());
  }
  out.manual = manual;
  out.id = b_.tuple(parts);
  return out;
}

Value Walker::element(const Instruction& instr, const Value& in) {
  const auto index = static_cast<size_t>(instr.as<TupleIndexAttrs>().index);
  const Shape& shape = m_[in.id].shape;
  size_t first = index;
  if (in.leaves.size() != shape.elements().size()) {
    first = 0;
    for (size_t i = 0; i < index; ++i) first += static_cast<size_t>(shape.element(i).leaf_count());
  }
  const auto n = static_cast<size_t>(shape.element(index).leaf_count());
  Value out{InstrId::None, {}, {}, in.manual};
  for (size_t i = 0; i < n; ++i) out.open.push_back(open_of(in, first + i));
  out.leaves.assign(in.leaves.begin() + static_cast<std::ptrdiff_t>(first),
                    in.leaves.begin() + static_cast<std::ptrdiff_t>(first + n));
  out.id = b_.get(in.id, static_cast<int64_t>(index));
  return out;
}

// Where partitions of several domains work together by the program's own word: those that do have the same tiles.
Expected<Value> Walker::collective(const Instruction& instr, Operands in) {
  int64_t dimension = -1;
  if (instr.op == Op::ALL_GATHER || instr.op == Op::REDUCE_SCATTER)
    dimension = instr.as<CollectiveDimAttrs>().dimension;
  if (instr.op == Op::ALL_TO_ALL && !instr.as<AllToAllAttrs>().dimension.empty())
    dimension = instr.as<AllToAllAttrs>().dimension[0];
  Value out;
  std::vector<InstrId> operands;
  for (Value& v : in) {
    if (v.leaves.size() != 1) return replicated(instr, std::move(in));
    if (instr.op == Op::ALL_TO_ALL && dimension < 0 && v.leaves[0] != in[0].leaves[0]) v = reshard(v, in[0].leaves);
    std::vector<Tiling> to = v.leaves;
    if (dimension >= 0) to[0][static_cast<size_t>(dimension)] = Column();
    v = reshard(v, to);
    operands.push_back(v.id);
    out.leaves.push_back(to[0]);
  }
  size_t at = 0;
  const std::vector<CompId> called(instr.called.begin(), instr.called.end());
  out.id = b_.op(instr.op, local_shape(instr.shape, out.leaves, at), operands, instr.attrs, called);
  return out;
}

}  // namespace collet::hlo::spmd
