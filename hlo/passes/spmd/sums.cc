// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "hlo/ops/eval/body.h"
#include "hlo/passes/spmd/walker.h"

// Values that are sums of what the partitions have: where sums are left open, and where they are made.

namespace collet::hlo::spmd {
namespace {

// Rounding, or the loss of high bits, aside, the parts of a sum become those of the converted sum.
bool converts_terms(Type from, Type to) {
  if (is_integer(from)) return is_integer(to) && type_info(to).bits <= type_info(from).bits;
  return (is_float(from) && (is_float(to) || is_complex(to))) || (is_complex(from) && is_complex(to));
}

bool adds(const Module& module, const Instruction& instr) {
  return eval::single_op(module, instr.called[0]) == Op::ADD;
}

}  // namespace

std::optional<std::vector<size_t>> terms_of(const Module& module, const Instruction& instr,
                                            const std::vector<bool>& open) {
  std::vector<size_t> terms;
  switch (instr.op) {
    case Op::CONVERT:
      if (!converts_terms(module[instr.operand(0)].shape.type(), instr.shape.type())) return std::nullopt;
      [[fallthrough]];
    case Op::COPY:
    case Op::NEGATE:
    case Op::REAL:
    case Op::IMAG:
    case Op::TRANSPOSE:
    case Op::RESHAPE:
    case Op::BROADCAST:
    case Op::SLICE:
    case Op::REVERSE:
    case Op::DYNAMIC_SLICE:
    case Op::GATHER:
      terms = {0};
      break;
    case Op::ADD:
    case Op::SUBTRACT:
    case Op::COMPLEX:
    case Op::PAD:
    case Op::DYNAMIC_UPDATE_SLICE:
      terms = {0, 1};
      break;
    case Op::SELECT:
      terms = {1, 2};
      break;
    case Op::CONCATENATE:
      for (size_t k = 0; k < instr.operands.size(); ++k) terms.push_back(k);
      break;
    case Op::MULTIPLY:  // but no quotients: 0/0 is no part of anything
      if (open[0] && open[1]) return std::nullopt;
      return std::vector<size_t>{open[0] ? size_t{0} : size_t{1}};
    case Op::REDUCE:
      if (instr.operands.size() != 2 || !adds(module, instr)) return std::nullopt;
      terms = {0, 1};
      break;
    case Op::SCATTER:
      if (instr.operands.size() != 3 || !adds(module, instr)) return std::nullopt;
      terms = {0, 2};
      break;
    default:
      return std::nullopt;
  }
  for (size_t k = 0; k < open.size(); ++k)
    if (open[k] && std::find(terms.begin(), terms.end(), k) == terms.end()) return std::nullopt;
  return terms;
}

std::vector<bool> opened(std::span<const Value> values) {
  std::vector<bool> out;
  for (const Value& v : values)
    out.push_back(std::any_of(v.open.begin(), v.open.end(), [](const Column& c) { return !c.whole(); }));
  return out;
}

std::unordered_map<uint32_t, Wish> Walker::asked_of(std::span<const InstrId> order) const {
  std::unordered_map<uint32_t, Wish> out;
  for (InstrId id : order) {
    const Instruction& instr = m_[id];
    if (!instr.extras || !instr.shape.is_array()) continue;
    InstrId made = id;
    if (instr.op == Op::CUSTOM_CALL) {
      const auto target = instr.as<CustomCallAttrs>().target;
      if (instr.operands.size() != 1 || (target != "Sharding" && target != "xla.sdy.FuncResultSharding")) continue;
      made = instr.operand(0);
    }
    std::vector<bool> may_split;
    auto wish = stated(instr, instr.shape, 0, &may_split);
    if (!wish) continue;
    if (!fits({wish->open}, world_)) wish->open = Column();
    const auto [it, fresh] = out.try_emplace(index_of(made), *wish);
    if (!fresh && it->second.open.whole()) it->second.open = std::move(wish->open);
  }
  return out;
}

bool Walker::stays_open(const Instruction& instr, const Operands& in, const Column& asked) const {
  if (asked.whole() || instr.shape.has_dynamic()) return false;
  const Column* sums = nullptr;
  for (const Value& v : in) {
    if (v.manual || v.leaves.size() != 1 || m_[v.id].shape.has_dynamic()) return false;
    const Column& c = open_of(v, 0);
    if (c.whole()) continue;
    if (sums && !same_parts(*sums, c)) return false;
    sums = &c;
  }
  return sums && terms_of(m_, instr, opened(in)) && rule_of(m_, instr, true);
}

Value Walker::settled(Value value) {
  const std::vector<Tiling> to = value.leaves;
  return laid(std::move(value), to, {});
}

Value Walker::reshard(Value value, std::span<const Tiling> to) {
  const std::vector<Column> open = value.open;
  return laid(std::move(value), to, open);
}

Value Walker::laid(Value value, std::span<const Tiling> to, std::span<const Column> open) {
  static const Column kSummed;
  const auto open_at = [&](size_t leaf) -> const Column& { return leaf < open.size() ? open[leaf] : kSummed; };
  bool same = std::equal(to.begin(), to.end(), value.leaves.begin(), value.leaves.end());
  for (size_t i = 0; same && i < value.leaves.size(); ++i) same = same_parts(open_of(value, i), open_at(i));
  if (same) return value;
  const Shape shape = m_[value.id].shape;
  if (!shape.is_tuple()) return granted(std::move(value), {to[0], open_at(0)});
  std::vector<InstrId> parts;
  Value out{InstrId::None, {to.begin(), to.end()}, {open.begin(), open.end()}, value.manual};
  size_t at = 0;
  for (size_t i = 0; i < shape.elements().size(); ++i) {
    const auto n = static_cast<size_t>(shape.element(i).leaf_count());
    Value part{b_.get(value.id, static_cast<int64_t>(i)), {}, {}, value.manual};
    std::vector<Column> wanted;
    for (size_t leaf = at; leaf < at + n; ++leaf) {
      part.leaves.push_back(value.leaves[leaf]);
      part.open.push_back(open_of(value, leaf));
      wanted.push_back(open_at(leaf));
    }
    parts.push_back(laid(std::move(part), to.subspan(at, n), wanted).id);
    at += n;
  }
  out.id = b_.tuple(parts);
  return out;
}

Value Walker::granted(Value value, const Wish& wish) {
  const Column has = open_of(value, 0);
  // What is summed now, what is opened now, and what stays open all the while.
  Column sum, fresh, stays;
  if (same_parts(has, wish.open)) {
    stays = has;
  } else if (auto more = remainder(has, wish.open)) {
    sum = std::move(*more);
    stays = wish.open;
  } else if (auto less = remainder(wish.open, has)) {
    fresh = std::move(*less);
    stays = has;
  } else {
    sum = has;
    fresh = wish.open;
  }
  Tiling now = value.leaves[0];
  InstrId id = value.id;
  if (!sum.whole()) {
    Tiling all = now;
    all.push_back(sum);
    const size_t last = now.size();
    id = e_.all_reduce(id, b_.combiner(Op::ADD, b_.type(id)), all, std::span(&last, 1), within(world_, stays));
  }
  // Tiles along what is opened are terms at their places.
  for (size_t d = 0; d < now.size() && !fresh.whole(); ++d) {
    if (!refines(now[d], wish.tiling[d])) continue;
    const Column tiles = low_part(now[d], now[d].count / wish.tiling[d].count);
    if (!same_parts(tiles, fresh)) continue;
    id = e_.spread(id, d, tiles);
    now[d] = wish.tiling[d];
    stays = wish.open;
    fresh = Column();
  }
  id = e_.reshard(id, now, wish.tiling, within(world_, stays));
  if (!fresh.whole()) id = e_.only_first(id, fresh);
  return {id, {wish.tiling}, {wish.open}, value.manual};
}

}  // namespace collet::hlo::spmd
