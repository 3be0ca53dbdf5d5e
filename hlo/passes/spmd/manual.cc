// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "hlo/passes/rewriter.h"
#include "hlo/passes/spmd/walker.h"

// Markers: constraints, and the computations that the program itself wrote for one partition.

namespace collet::hlo::spmd {
namespace {

std::string_view frontend_text(const Instruction& instr, std::string_view name) {
  if (instr.extras)
    for (const FrontendAttribute& a : instr.extras->frontend_attributes)
      if (a.name == name) return a.value;
  return {};
}

std::string named(const Instruction& instr) {
  return "'" + std::string(instr.name) + "'";
}

InstrId zeros(Builder& b, const Shape& shape) {
  if (shape.is_array()) return b.fill(shape, 0);
  if (!shape.is_tuple()) return b.op(Op::AFTER_ALL, shape, {});
  std::vector<InstrId> parts;
  for (const Shape& element : shape.elements()) parts.push_back(zeros(b, element));
  return b.tuple(parts);
}

// What of a sharding's tiles the manual axes make, and what the others.
struct Halves {
  Tiling manual, rest;
  Tiling both() const {
    Tiling out;
    for (size_t d = 0; d < manual.size(); ++d) out.push_back(joined(manual[d], rest[d]));
    return out;
  }
};

std::optional<Halves> halves(const NamedMesh& mesh, const std::vector<bool>& manual, const NamedSharding& sharding,
                             size_t partitions) {
  const auto parts = resolve_axes(sharding, mesh);
  if (!parts) return std::nullopt;
  std::vector<bool> rest = manual;
  rest.flip();
  auto a = from_axes(mesh, *parts, manual, partitions), b = from_axes(mesh, *parts, rest, partitions);
  if (!a || !b) return std::nullopt;
  return Halves{std::move(*a), std::move(*b)};
}

Status mismatch(const Instruction& instr, size_t i, const Shape& from, const Shape& to) {
  return invalid_argument(named(instr) + ": by its sharding result " + std::to_string(i) + " cannot be " +
                          to.to_string() + " where operand " + std::to_string(i) + " is " + from.to_string());
}

Tiling with_sums(Tiling tiling, const Column& open) {
  tiling.push_back(open);
  return tiling;
}

Status twice(const Instruction& instr, std::string_view which, size_t i) {
  return invalid_argument(named(instr) + ": the sharding of " + std::string(which) + " " + std::to_string(i) +
                          " splits by an axis along which it is to be summed");
}

// The column by which sums are left open.
Column open_along(const NamedMesh& mesh, const NamedSharding& sharding, size_t partitions) {
  const auto parts = resolve_unreduced(sharding, mesh);
  if (!parts) return {};
  const auto column = from_axes(mesh, {*parts}, std::vector<bool>(mesh.axes.size(), true), partitions);
  return column ? (*column)[0] : Column();
}

}  // namespace

Expected<NamedMesh> Walker::mesh(const NamedSharding& sharding) const {
  if (sharding.inline_mesh) return *sharding.inline_mesh;
  if (auto found = find_mesh(shared_.meshes, sharding.mesh)) return std::move(*found);
  return invalid_argument("there is no mesh @" + sharding.mesh);
}

Expected<Walker::Manual> Walker::manual(const Instruction& marker) const {
  const std::string_view in = frontend_text(marker, "xla.sdy.in_shardings");
  const auto list = parse_sharding_list(in.empty() ? frontend_text(marker, "xla.sdy.out_shardings") : in);
  if (!list || list->empty()) return unimplemented(named(marker) + ": its shardings are not understood");
  Manual out;
  COLLET_ASSIGN(out.mesh, mesh((*list)[0]));
  out.axes.assign(out.mesh.axes.size(), false);
  std::vector<AxisPart> parts;
  const auto names = parse_axis_names(frontend_text(marker, "xla.sdy.manual_axes"));
  if (!names) return invalid_argument(named(marker) + ": its xla.sdy.manual_axes are no list of names");
  for (const std::string& name : *names) {
    const size_t axis = out.mesh.find(name);
    if (axis == out.axes.size()) return invalid_argument(named(marker) + ": its mesh has no axis " + name);
    out.axes[axis] = true;
    parts.push_back({axis, 1, out.mesh.axes[axis].second});
  }
  const auto place = from_axes(out.mesh, {parts}, out.axes, world_.partitions());
  if (!place)
    return invalid_argument(named(marker) + ": a mesh of " + std::to_string(out.mesh.devices()) +
                            " devices in a program of " + std::to_string(world_.partitions()) + " partitions");
  for (size_t p = 0; p < world_.partitions(); ++p)
    out.world.domain.push_back(world_.domain[p] * (*place)[0].count + (*place)[0].of(p));
  return out;
}

Expected<Value> Walker::custom_call(const Instruction& instr, const Operands& in) {
  const auto target = instr.as<CustomCallAttrs>().target;
  if (target == "xla.sdy.GlobalToLocalShape") return enter(instr, in);
  if (target == "xla.sdy.LocalToGlobalShape") return leave(instr, in);
  if (in.size() == 1 && (target == "Sharding" || target == "xla.sdy.FuncResultSharding")) {
    if (!instr.shape.same_without_layout(m_[instr.operand(0)].shape))
      return invalid_argument(named(instr) + " gives " + instr.shape.to_string() + " of " +
                              m_[instr.operand(0)].shape.to_string());
    if (in[0].manual || in[0].leaves.size() != 1) return in[0];
    const auto to = wanted(instr, instr.shape, 0, in[0].leaves[0]);
    return to ? granted(in[0], *to) : in[0];
  }
  if (in.size() == 1 && target == "annotate_device_placement" &&
      instr.shape.same_without_layout(m_[instr.operand(0)].shape))
    return in[0];  // the same value in other memory
  if (in.size() == 1 && target == "SPMDFullToShardShape") {
    Value out = settled(in[0]);
    if (out.leaves.size() != 1) return unimplemented(named(instr) + " takes a tuple");
    out.manual = true;
    out.leaves = {whole(out.leaves[0].size())};  // tiles of no array from here on
    if (!m_[out.id].shape.compatible(instr.shape))
      return unimplemented(named(instr) + ": the tile is " + m_[out.id].shape.to_string() + ", not " +
                           instr.shape.to_string());
    return out;
  }
  if (in.size() == 1 && target == "SPMDShardToFullShape") {
    const InstrId tile = settled(in[0]).id;
    const auto to = wanted(instr, instr.shape, 0, whole(static_cast<size_t>(instr.shape.rank())));
    if (!to) return unimplemented(named(instr) + ": its sharding is not understood");
    size_t at = 0;
    if (!m_[tile].shape.compatible(local_shape(instr.shape, std::array{to->tiling}, at)))
      return unimplemented(named(instr) + ": a value of each partition is no tile of " + instr.shape.to_string());
    return Value{tile, {to->tiling}, {to->open}, false};
  }
  Operands all;
  for (const Value& v : in) all.push_back(made_whole(v));
  if (std::any_of(in.begin(), in.end(), [](const Value& v) { return v.manual; })) {
    Value out = copied(instr, all);
    out.manual = true;
    return out;
  }
  const auto device = one_device(instr);
  if (device && world_.together()) {
    if (*device < 0 || *device >= static_cast<int64_t>(world_.partitions()) || instr.shape.has_dynamic())
      return unimplemented(named(instr) + ": on device " + std::to_string(*device) + " alone");
    return on_one(instr, all, *device);
  }
  // What is done once must not be done by everybody; a wish for an order may.
  const bool wish = target == "control_dep" || target == "dce_sink";
  if (instr.as<CustomCallAttrs>().has_side_effect && !wish && world_.together())
    return unimplemented(named(instr) + " (" + std::string(target) +
                         ") has a side effect, and no sharding says which device has it");
  return copied(instr, all);
}

std::optional<int64_t> Walker::one_device(const Instruction& instr) const {
  if (!instr.extras) return std::nullopt;
  if (const Sharding* s = instr.extras->sharding) {
    if (s->kind == Sharding::Kind::Tuple && !s->elements.empty()) s = &s->elements[0];
    return s->kind == Sharding::Kind::Maximal ? std::optional(s->device) : std::nullopt;
  }
  const std::string_view text = frontend_text(instr, "xla.sdy.sharding");
  std::optional<NamedSharding> first = parse_named_sharding(text);
  if (const auto list = parse_sharding_list(text); list && !list->empty()) first = list->front();
  if (!first) return std::nullopt;
  const auto where = mesh(*first);
  if (!where.ok() || !where->axes.empty() || where->device_ids.size() != 1) return std::nullopt;
  return where->device_ids[0];
}

// By the partition on `device` alone; the others get the results from it.
Value Walker::on_one(const Instruction& instr, const Operands& in, int64_t device) {
  std::vector<InstrId> operands;
  std::vector<Shape> shapes;
  for (const Value& v : in) {
    operands.push_back(v.id);
    shapes.push_back(b_.shape(v.id));
  }
  const Shape taken = Shape::tuple(shapes);
  const auto branch = [&](std::string_view stem, const auto& make) {
    const CompId c = m_.add_computation(fresh_computation_name(m_, stem));
    Builder b(m_, c);
    b.set_origin(&instr);
    const InstrId argument = m_.append_parameter(c, 0, taken);
    m_[c].root = make(b, argument);
    return c;
  };
  const CompId does = branch("on_one", [&](Builder& b, InstrId argument) {
    std::vector<InstrId> parts;
    for (size_t i = 0; i < shapes.size(); ++i) parts.push_back(b.get(argument, static_cast<int64_t>(i)));
    const std::vector<CompId> called(instr.called.begin(), instr.called.end());
    return b.op(instr.op, instr.shape.without_layout(), parts, instr.attrs, called);
  });
  const CompId waits = branch("on_others", [&](Builder& b, InstrId) { return zeros(b, instr.shape); });
  const InstrId mine = b_.compare(e_.partition_id(), Direction::EQ, b_.scalar_int(Type::U32, device));
  const InstrId argument = b_.tuple(operands);
  const InstrId result = b_.op(Op::CONDITIONAL, instr.shape.without_layout(), {mine, argument, argument}, nullptr,
                               std::array{does, waits});
  return whole_value(e_.from_one(result, device, world_), instr.shape);
}

// As many results as operands.
Status Walker::check_marker(const Instruction& instr, const Operands& in) const {
  const size_t n = instr.shape.is_tuple() ? instr.shape.elements().size() : 1;
  if (n == in.size()) return {};
  return invalid_argument(named(instr) + " has " + std::to_string(n) + " results for " + std::to_string(in.size()) +
                          " operands");
}

Expected<Value> Walker::enter(const Instruction& instr, const Operands& in) {
  COLLET_TRY(check_marker(instr, in));
  COLLET_ASSIGN(const Manual inside, manual(instr));
  const auto list = parse_sharding_list(frontend_text(instr, "xla.sdy.in_shardings"));
  if (!list || list->size() != in.size()) return invalid_argument(named(instr) + " needs a sharding for each operand");
  Value out;
  std::vector<InstrId> parts;
  for (size_t i = 0; i < in.size(); ++i) {
    const Shape shape = m_[instr.operand(i)].shape;
    const Shape& result = instr.shape.is_tuple() ? instr.shape.element(i) : instr.shape;
    if (!shape.is_array()) {
      if (!result.same_without_layout(shape)) return mismatch(instr, i, shape, result);
      parts.push_back(in[i].id);
      out.leaves.insert(out.leaves.end(), in[i].leaves.begin(), in[i].leaves.end());
      continue;
    }
    auto tiles = halves(inside.mesh, inside.axes, (*list)[i], world_.partitions());
    if (!tiles || tiles->manual.size() != static_cast<size_t>(shape.rank()))
      return unimplemented(named(instr) + ": the sharding of operand " + std::to_string(i) + " is not understood");
    for (size_t d = 0; d < tiles->rest.size(); ++d) {
      const int64_t size = shape.dim(static_cast<int>(d));
      if (size % tiles->manual[d].count)
        return invalid_argument(named(instr) + ": dimension " + std::to_string(d) + " of " + shape.to_string() +
                                " does not split into " + std::to_string(tiles->manual[d].count));
      if (size % (tiles->manual[d].count * tiles->rest[d].count)) tiles->rest[d] = Column();
    }
    if (!fits(tiles->both(), world_))
      return invalid_argument(named(instr) + ": the sharding of operand " + std::to_string(i) +
                              " uses an axis that is manual already");
    size_t at = 0;
    if (!local_shape(shape, std::array{tiles->manual}, at).same_without_layout(result))
      return mismatch(instr, i, shape, result);
    const Column open = open_along(inside.mesh, (*list)[i], world_.partitions());
    if (!fits(with_sums(tiles->both(), open), world_)) return twice(instr, "operand", i);
    parts.push_back(granted(in[i], {tiles->both(), open}).id);
    out.leaves.push_back(tiles->rest);
  }
  out.id = parts.size() == 1 && !instr.shape.is_tuple() ? parts[0] : b_.tuple(parts);
  return out;
}

Expected<Value> Walker::leave(const Instruction& instr, const Operands& in) {
  COLLET_TRY(check_marker(instr, in));
  COLLET_ASSIGN(const Manual inside, manual(instr));
  const auto list = parse_sharding_list(frontend_text(instr, "xla.sdy.out_shardings"));
  if (!list || list->size() != in.size()) return invalid_argument(named(instr) + " needs a sharding for each operand");
  Walker within(shared_, e_, inside.world, trial_);
  Value out;
  std::vector<InstrId> parts;
  for (size_t i = 0; i < in.size(); ++i) {
    const Shape& tile = m_[instr.operand(i)].shape;
    const Shape& shape = instr.shape.is_tuple() ? instr.shape.element(i) : instr.shape;
    if (!tile.is_array()) {
      if (!shape.same_without_layout(tile)) return mismatch(instr, i, tile, shape);
      parts.push_back(in[i].id);
      out.leaves.insert(out.leaves.end(), in[i].leaves.begin(), in[i].leaves.end());
      continue;
    }
    auto tiles = halves(inside.mesh, inside.axes, (*list)[i], world_.partitions());
    if (!tiles || tiles->manual.size() != static_cast<size_t>(shape.rank()))
      return unimplemented(named(instr) + ": the sharding of result " + std::to_string(i) + " is not understood");
    for (size_t d = 0; d < tiles->manual.size(); ++d)
      if (shape.dim(static_cast<int>(d)) % tiles->manual[d].count) return mismatch(instr, i, tile, shape);
    size_t at = 0;
    if (!local_shape(shape, std::array{tiles->manual}, at).same_without_layout(tile))
      return mismatch(instr, i, tile, shape);
    for (size_t d = 0; d < tiles->rest.size(); ++d) {
      Column& rest = tiles->rest[d];
      if ((*list)[i].dimensions[d].open && rest.whole()) rest = in[i].leaves[0][d];
      if (shape.dim(static_cast<int>(d)) % (tiles->manual[d].count * rest.count)) rest = Column();
    }
    if (!fits(tiles->both(), world_)) tiles->rest = whole(tiles->rest.size());
    parts.push_back(within.reshard(within.settled(in[i]), std::array{tiles->rest}).id);
    out.leaves.push_back(tiles->both());
    out.open.resize(out.leaves.size());
    out.open.back() = open_along(inside.mesh, (*list)[i], world_.partitions());
    if (!fits(with_sums(out.leaves.back(), out.open.back()), world_)) return twice(instr, "result", i);
  }
  out.id = parts.size() == 1 && !instr.shape.is_tuple() ? parts[0] : b_.tuple(parts);
  return out;
}

Expected<Value> Walker::call(InstrId id, const Instruction& instr, const Operands& in) {
  const auto marked = markers_.find(index_of(id));
  InstrId marker = marked == markers_.end() ? InstrId::None : marked->second;
  // A computation without results still says by its operands that it is one of parts.
  for (InstrId operand : instr.operands) {
    if (m_[operand].op == Op::GET_TUPLE_ELEMENT) operand = m_[operand].operand(0);
    if (m_[operand].op == Op::CUSTOM_CALL && m_[operand].as<CustomCallAttrs>().target == "xla.sdy.GlobalToLocalShape")
      marker = operand;
  }
  if (marker == InstrId::None) return Walker(shared_, e_, world_, trial_).walk(instr.called[0], in);
  const Instruction custom = m_[marker];
  COLLET_ASSIGN(const Manual inside, manual(custom));
  if (inside.world.alone() && !holds_markers(instr.called[0])) return copied(instr, in);
  return Walker(shared_, e_, inside.world, trial_).walk(instr.called[0], in);
}

}  // namespace collet::hlo::spmd
