// SPDX-License-Identifier: Apache-2.0
#include "hlo/testing/reduce_edits.h"

#include <algorithm>
#include <unordered_set>

#include "hlo/passes/rewriter.h"

namespace collet::hlo::testing {
bool is_filler(const Module& module, const Instruction& instr) {
  return instr.op == Op::CONSTANT || (instr.op == Op::BROADCAST && module[instr.operand(0)].op == Op::CONSTANT) ||
         (instr.op == Op::AFTER_ALL && instr.operands.empty());
}

namespace {

bool is_plumbing(const Module& module, const Instruction& instr) {
  return instr.op == Op::PARAMETER || instr.op == Op::TUPLE || instr.op == Op::GET_TUPLE_ELEMENT ||
         is_filler(module, instr);
}

int64_t clutter(const Module& module, const Instruction& instr) {
  int64_t n = instr.shape.layout() != nullptr;
  if (const Extras* e = instr.extras)
    n += (e->metadata != nullptr) + (e->sharding != nullptr) + !e->frontend_attributes.empty() +
         !e->control_predecessors.empty() + !e->backend_config.empty() + !e->statistics.empty() + !e->origin.empty();
  (void)module;
  return n;
}

}  // namespace

int64_t literal_cost(const Literal& value) {
  if (!value.shape().is_array() || value.element_count() == 0) return 0;
  if (!value.is_splat()) return 3 + value.element_count();
  const double x = value.as_double(0);
  return (x == 0 ? 0 : x == 1 ? 1 : 2) + (value.element_count() > 16 ? value.element_count() : 0);
}

Cost cost_of(const Module& module) {
  Cost cost{};
  const ModuleHeader& header = module.header();
  cost[2] = static_cast<int64_t>(module.computations().size());
  cost[5] = header.has_entry_layout + static_cast<int64_t>(header.aliases.size() + header.donors.size()) +
            header.is_scheduled + (header.replica_count != 1) + (header.num_partitions != 1) +
            static_cast<int64_t>(header.frontend_attributes.size()) + !header.verbatim.empty() +
            static_cast<int64_t>(header.spmd_to_parameters.size() + header.spmd_to_output.size());
  for (CompId c : module.computations())
    for (InstrId id : module[c].order) {
      const Instruction& instr = module[id];
      cost[0] += !is_plumbing(module, instr);
      cost[1] += !is_filler(module, instr);
      cost[3] += std::min<int64_t>(instr.shape.byte_size(), int64_t{1} << 40);
      if (instr.op == Op::CONSTANT) cost[4] += literal_cost(module.literal(instr));
      cost[5] += clutter(module, instr);
    }
  return cost;
}

namespace {

InstrId zeros(Builder& b, const Shape& shape) {
  if (shape.is_token()) return b.op(Op::AFTER_ALL, shape, {});
  if (shape.is_tuple()) {
    std::vector<InstrId> elements;
    for (const Shape& element : shape.elements()) {
      elements.push_back(zeros(b, element));
      if (elements.back() == InstrId::None) return InstrId::None;
    }
    return b.op(Op::TUPLE, shape, elements);
  }
  if (!shape.is_array() || shape.has_dynamic()) return InstrId::None;
  return b.fill(shape.without_layout(), 0);
}

bool same_shape(const Shape& a, const Shape& b) {
  return a.same_without_layout(b);
}

InstrId stand_in(Module& module, Builder& b, CompId c, const Instruction& instr, Replacement how) {
  switch (how) {
    case Replacement::Operand:
      for (InstrId o : instr.operands)
        if (same_shape(module[o].shape, instr.shape)) return o;
      return InstrId::None;
    case Replacement::Parameter:
      if (c != module.entry() || instr.shape.is_token() || instr.shape.is_opaque()) return InstrId::None;
      return module.append_parameter(c, static_cast<int64_t>(module[c].parameters.size()), instr.shape);
    case Replacement::Zero:
      return zeros(b, instr.shape);
  }
  return InstrId::None;
}

}  // namespace

bool substitute(Module& module, CompId c, std::span<const InstrId> which, Replacement how) {
  const std::unordered_set<uint32_t> wanted = [&] {
    std::unordered_set<uint32_t> out;
    for (InstrId id : which) out.insert(index_of(id));
    return out;
  }();
  module.header().has_entry_layout &= c != module.entry();
  Rewriter rewriter(module, c);
  for (InstrId id : rewriter.instructions()) {
    const Instruction& instr = rewriter.enter(id);
    const bool take = wanted.contains(index_of(id)) && instr.op != Op::PARAMETER;
    const InstrId with = take ? stand_in(module, rewriter.builder(), c, instr, how) : InstrId::None;
    if (with == InstrId::None)
      rewriter.keep(id);
    else
      rewriter.replace(id, with);
  }
  return rewriter.finish() && rewriter.builder().status().ok();
}

namespace {

InstrId inlined(Builder& b, const Instruction& instr, size_t branch) {
  switch (instr.op) {
    case Op::CALL:
    case Op::FUSION:
      return inline_computation(b, instr.called[0], instr.operands);
    case Op::WHILE: {
      const InstrId state[] = {instr.operand(0)};
      return inline_computation(b, instr.called[1], state);
    }
    case Op::CONDITIONAL: {
      if (branch >= instr.called.size()) return InstrId::None;
      const InstrId argument[] = {instr.operand(branch + 1)};
      return inline_computation(b, instr.called[branch], argument);
    }
    default:
      return InstrId::None;
  }
}

}  // namespace

bool inline_at(Module& module, CompId c, InstrId which, size_t branch) {
  Rewriter rewriter(module, c);
  for (InstrId id : rewriter.instructions()) {
    const Instruction instr = rewriter.enter(id);
    const InstrId with = id == which ? inlined(rewriter.builder(), instr, branch) : InstrId::None;
    if (with == InstrId::None)
      rewriter.keep(id);
    else
      rewriter.replace(id, with);
  }
  return rewriter.finish() && rewriter.builder().status().ok();
}

bool cut_after(Module& module, size_t count) {
  const CompId c = module.entry();
  Computation& entry = module[c];
  if (count > entry.order.size()) return false;
  std::vector<InstrId> order(entry.order.begin(), entry.order.begin() + static_cast<std::ptrdiff_t>(count));
  for (size_t i = count; i < entry.order.size(); ++i)
    if (module[entry.order[i]].op == Op::PARAMETER) order.push_back(entry.order[i]);
  std::unordered_set<uint32_t> used;
  for (InstrId id : order)
    for (InstrId o : module[id].operands) used.insert(index_of(o));
  std::vector<InstrId> results;
  std::vector<Shape> shapes;
  for (InstrId id : order) {
    const Instruction& instr = module[id];
    if (used.contains(index_of(id)) || instr.op == Op::PARAMETER || instr.shape.is_opaque()) continue;
    results.push_back(id);
    shapes.push_back(instr.shape);
  }
  if (results.empty()) return false;
  entry.order = std::move(order);
  entry.root = results.size() == 1 ? results[0] : module.append(c, Op::TUPLE, Shape::tuple(shapes), results);
  module.header().has_entry_layout = false;
  module.header().aliases.clear();
  return true;
}

bool keep_results(Module& module, std::span<const InstrId> drop) {
  const CompId c = module.entry();
  const Instruction root = module[module[c].root];
  if (root.op != Op::TUPLE) return false;
  std::vector<InstrId> kept;
  std::vector<Shape> shapes;
  for (InstrId o : root.operands)
    if (std::find(drop.begin(), drop.end(), o) == drop.end()) {
      kept.push_back(o);
      shapes.push_back(module[o].shape);
    }
  if (kept.empty()) return false;
  module[c].root = module.append(c, Op::TUPLE, Shape::tuple(shapes), kept);
  module.header().has_entry_layout = false;
  module.header().aliases.clear();
  return true;
}

bool root_at(Module& module, InstrId id) {
  module[module.entry()].root = id;
  module.header().has_entry_layout = false;
  module.header().aliases.clear();
  return true;
}

bool drop_parameters(Module& module, std::span<const InstrId> drop) {
  const CompId c = module.entry();
  Computation& entry = module[c];
  std::unordered_set<uint32_t> used{index_of(entry.root)};
  for (InstrId id : entry.order)
    for (InstrId o : module[id].operands) used.insert(index_of(o));
  const auto goes = [&](InstrId id) {
    return !used.contains(index_of(id)) && std::find(drop.begin(), drop.end(), id) != drop.end();
  };
  const size_t erased = std::erase_if(entry.parameters, goes);
  std::erase_if(entry.order, goes);
  for (size_t i = 0; i < entry.parameters.size(); ++i) {
    auto* attrs = module.make<ParameterAttrs>();
    *attrs = module[entry.parameters[i]].as<ParameterAttrs>();
    attrs->number = static_cast<int64_t>(i);
    module[entry.parameters[i]].attrs = attrs;
  }
  module.header().has_entry_layout = false;
  module.header().aliases.clear();
  module.header().donors.clear();
  return erased > 0;
}

std::vector<InstrId> unused(const Module& module, CompId c) {
  const std::unordered_set<uint32_t> used = used_in(module, c);
  std::vector<InstrId> out;
  for (InstrId id : module[c].order)
    if (!used.contains(index_of(id)) && module[id].op != Op::PARAMETER) out.push_back(id);
  return out;
}

bool drop_instructions(Module& module, std::span<const InstrId> drop) {
  if (drop.empty()) return false;
  const std::unordered_set<InstrId> gone(drop.begin(), drop.end());
  return std::erase_if(module[module[drop[0]].parent].order, [&](InstrId id) { return gone.contains(id); }) > 0;
}

bool strip(Module& module, bool everything) {
  ModuleHeader& header = module.header();
  header.has_entry_layout = false;
  header.verbatim = {};
  header.frontend_attributes.clear();
  header.spmd_to_parameters.clear();
  header.spmd_to_output.clear();
  if (everything) {
    header.is_scheduled = false;
    header.aliases.clear();
    header.donors.clear();
  }
  for (CompId c : module.computations())
    for (InstrId id : module[c].order) {
      Instruction& instr = module[id];
      if (!instr.extras) continue;
      Extras extras = *instr.extras;
      extras.metadata = nullptr;
      extras.statistics = extras.origin = {};
      if (everything) {
        extras.sharding = nullptr;
        extras.frontend_attributes = {};
        extras.control_predecessors = {};
        extras.backend_config = {};
      }
      instr.extras = module.arena().make<Extras>(extras);
    }
  return true;
}

bool strip_layouts(Module& module) {
  module.header().has_entry_layout = false;
  for (CompId c : module.computations())
    for (InstrId id : module[c].order) module[id].shape = module[id].shape.without_layout();
  return true;
}

namespace {

// The largest number of elements for which a constant is written out instead of as a broadcast.
constexpr int64_t kMostElements = 16;

Literal repeated(const Literal& scalar, const Shape& shape) {
  Literal value = Literal::zeros(shape);
  uint8_t* out = value.mutable_bytes();
  for (int64_t i = 0; i < value.element_count(); ++i)
    std::copy_n(scalar.bytes(), scalar.byte_size(), out + i * scalar.byte_size());
  return value;
}

}  // namespace

bool make_plain(Module& module, std::span<const InstrId> which, Plain how) {
  for (InstrId id : which) {
    Instruction& instr = module[id];
    if (!instr.shape.is_array() || instr.shape.has_dynamic() || instr.shape.element_count() == 0) continue;
    const Literal& old = module.literal(instr);
    Literal scalar = how == Plain::Zero  ? Literal::scalar(instr.shape.type(), 0)
                     : how == Plain::One ? Literal::scalar(instr.shape.type(), 1)
                                         : Literal::from_bytes(Shape::scalar(instr.shape.type()), old.bytes());
    if (instr.shape.rank() == 0 || instr.shape.element_count() <= kMostElements) {
      instr.attrs = module.constant_attrs(repeated(scalar, instr.shape.without_layout()));
      continue;
    }
    // A large constant becomes a broadcast.
    const InstrId inner = module.create(instr.parent, Op::CONSTANT, scalar.shape(), {}, module.constant_attrs(scalar));
    auto& order = module[instr.parent].order;
    order.insert(std::find(order.begin(), order.end(), id), inner);
    Instruction& outer = module[id];
    outer.op = Op::BROADCAST;
    outer.attrs = module.make<BroadcastAttrs>();
    const InstrId operands[] = {inner};
    outer.operands = module.arena().list<InstrId>(std::span<const InstrId>(operands));
  }
  return true;
}

bool make_constants(Module& module, std::span<const InstrId> which) {
  bool changed = false;
  for (InstrId id : which) {
    Instruction& instr = module[id];
    if (instr.op != Op::BROADCAST || instr.shape.has_dynamic() || instr.shape.element_count() > kMostElements) continue;
    const Literal* scalar = splat_value(module, id);
    if (!scalar || scalar->shape().rank() != 0) continue;
    instr.attrs = module.constant_attrs(repeated(*scalar, instr.shape.without_layout()));
    instr.op = Op::CONSTANT;
    instr.operands = {};
    changed = true;
  }
  return changed;
}

}  // namespace collet::hlo::testing
