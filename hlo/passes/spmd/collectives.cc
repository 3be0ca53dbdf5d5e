// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/spmd/collectives.h"

#include <algorithm>
#include <array>

#include "hlo/passes/spmd/rematerialize.h"

namespace collet::hlo::spmd {
namespace {

using Kind = ReshardStep::Kind;

std::vector<int64_t> dims_of(const Builder& b, InstrId x) {
  const Shape& shape = b.shape(x);
  return {shape.dims().begin(), shape.dims().end()};
}

}  // namespace

InstrId TileBuilder::partition_id() {
  if (partition_id_ == InstrId::None) partition_id_ = b_.op(Op::PARTITION_ID, Shape::array(Type::U32, {}), {});
  return partition_id_;
}

InstrId TileBuilder::from_table(const std::vector<int64_t>& by_partition) {
  if (std::all_of(by_partition.begin(), by_partition.end(), [&](int64_t v) { return v == by_partition[0]; }))
    return b_.scalar_int(b_.index_type(), by_partition[0]);
  const auto known = tables_.find(by_partition);
  if (known != tables_.end()) return known->second;
  const std::array<InstrId, 1> start = {partition_id()};
  const std::array<int64_t, 1> one = {1};
  const InstrId entry = b_.dynamic_slice(b_.ints(b_.index_type(), by_partition), start, one);
  return tables_[by_partition] = b_.reshape(entry, {});
}

InstrId TileBuilder::tile_offset(const DimensionSharding& sharding, int64_t step, int64_t offset) {
  std::vector<int64_t> offsets;
  if (!sharding.is_split()) return b_.scalar_int(b_.index_type(), offset);
  for (int64_t tile : sharding.tiles()) offsets.push_back(step * tile + offset);
  return from_table(offsets);
}

InstrId TileBuilder::pad_to(InstrId x, size_t dim, int64_t size) {
  const int64_t has = dims_of(b_, x)[dim];
  if (has >= size) return x;
  return b_.pad_dim(x, b_.scalar_int(b_.type(x), 0), static_cast<int64_t>(dim), 0, size - has);
}

InstrId TileBuilder::cut_to(InstrId x, size_t dim, int64_t size) {
  return dims_of(b_, x)[dim] <= size ? x : b_.slice_dim(x, static_cast<int64_t>(dim), 0, size);
}

Groups TileBuilder::to_groups(const std::vector<std::vector<int64_t>>& lists, size_t partitions, bool global) {
  std::vector<Dims> out;
  for (int64_t replica = 0; replica < (global ? replicas_ : 1); ++replica)
    for (std::vector<int64_t> group : lists) {
      for (int64_t& id : group) id += replica * static_cast<int64_t>(partitions);
      out.push_back(module_.dims(group));
    }
  Groups groups;
  groups.groups = module_.arena().list<const Dims>(out);
  return groups;
}

Groups TileBuilder::groups_along(const ReshardStep& step, const DeviceGroups& groups, bool global) {
  // The shardings other than `along` in which partitions may differ: those of the dimensions, and the axes that stay
  // unreduced.
  std::vector<DimensionSharding> dims =
      step.kind == Kind::AllReduce || step.kind == Kind::ReduceScatter ? step.before.dimensions : step.after.dimensions;
  if (step.kind == Kind::AllToAll) {
    dims = step.before.dimensions;
    dims[step.from_dim] = step.after.dimensions[step.from_dim];
  }
  const size_t last = dims.size();
  dims.push_back(step.along);
  const DeviceGroups inside = within(groups, step.after.unreduced);
  return to_groups(groups_across(dims, std::span(&last, 1), inside), groups.partitions(), global);
}

InstrId TileBuilder::reshard(InstrId x, const Shape& shape, const ArraySharding& from, const ArraySharding& to,
                             const DeviceGroups& groups, CompId combine) {
  if (from == to || !b_.status().ok() || !shape.is_array()) return x;
  if (combine == CompId::None)
    for (const DoneReshard& made : done_reshards_[x])
      if (made.from == from && made.to == to && made.groups == groups) return made.id;
  InstrId out = x;
  for (const ReshardStep& s : plan_reshard(shape, from, to, groups).steps) out = step(out, shape, s, groups, combine);
  if (combine == CompId::None) done_reshards_[x].push_back({from, to, groups, out});
  return out;
}

InstrId TileBuilder::step(InstrId x, const Shape& shape, const ReshardStep& s, const DeviceGroups& groups,
                          CompId combine) {
  if (!b_.status().ok()) return x;
  switch (s.kind) {
    case Kind::AllReduce:
    case Kind::ReduceScatter:
      return reduce(x, shape, s, groups, combine);
    case Kind::Slice:
      return slice(x, shape, s);
    case Kind::AllGather:
      return all_gather(x, shape, s, groups);
    case Kind::AllToAll:
      return all_to_all(x, shape, s, groups);
    case Kind::Permute:
      return permute(x, s, groups);
    case Kind::MaskTerms:
      return on_first_tile(x, s.along);
    case Kind::SpreadTerms:
      return spread_terms(x, s);
  }
  return x;
}

InstrId TileBuilder::reduce(InstrId x, const Shape& shape, const ReshardStep& s, const DeviceGroups& groups,
                            CompId combine) {
  if (combine == CompId::None) combine = b_.combiner(Op::ADD, b_.type(x));
  if (s.kind == Kind::AllReduce) {
    auto* attrs = module_.make<CollectiveAttrs>();
    attrs->groups = groups_along(s, groups, true);
    attrs->channel = ++channels_;
    attrs->global_ids = true;
    return b_.op(Op::ALL_REDUCE, b_.shape(x), {x}, attrs, std::span(&combine, 1));
  }
  const int64_t tile = tile_size(shape.dim(static_cast<int>(s.dim)), s.after.dimensions[s.dim].count());
  x = pad_to(x, s.dim, tile * s.along.count());
  const auto* attrs = dimension_attrs(s, groups);
  std::vector<int64_t> dims = dims_of(b_, x);
  dims[s.dim] = tile;
  return b_.op(Op::REDUCE_SCATTER, Shape::array(b_.type(x), dims), {x}, attrs, std::span(&combine, 1));
}

const CollectiveDimAttrs* TileBuilder::dimension_attrs(const ReshardStep& s, const DeviceGroups& groups) {
  auto* attrs = module_.make<CollectiveDimAttrs>();
  attrs->groups = groups_along(s, groups, true);
  attrs->channel = ++channels_;
  attrs->global_ids = true;
  attrs->dimension = static_cast<int64_t>(s.dim);
  return attrs;
}

InstrId TileBuilder::slice(InstrId x, const Shape& shape, const ReshardStep& s) {
  const int64_t tile = tile_size(shape.dim(static_cast<int>(s.dim)), s.after.dimensions[s.dim].count());
  std::vector<int64_t> sizes = dims_of(b_, x);
  if (sizes[s.dim] == tile * s.along.count()) {
    const InstrId made = rematerialize(b_, x, s.dim, tile_offset(s.along, tile), tile);
    if (made != InstrId::None) return made;
  }
  x = pad_to(x, s.dim, tile * s.along.count());
  sizes[s.dim] = tile;
  std::vector<InstrId> starts(sizes.size(), b_.scalar_int(b_.index_type(), 0));
  starts[s.dim] = tile_offset(s.along, tile);
  return b_.dynamic_slice(x, starts, sizes);
}

InstrId TileBuilder::all_gather(InstrId x, const Shape& shape, const ReshardStep& s, const DeviceGroups& groups) {
  const auto* attrs = dimension_attrs(s, groups);
  std::vector<int64_t> dims = dims_of(b_, x);
  dims[s.dim] *= s.along.count();
  const InstrId all = b_.op(Op::ALL_GATHER, Shape::array(b_.type(x), dims), {x}, attrs);
  return cut_to(all, s.dim, tile_size(shape.dim(static_cast<int>(s.dim)), s.after.dimensions[s.dim].count()));
}

InstrId TileBuilder::all_to_all(InstrId x, const Shape& shape, const ReshardStep& s, const DeviceGroups& groups) {
  const int64_t n = s.along.count();
  const size_t split = s.dim, join = s.from_dim;
  x = pad_to(x, split, n * tile_size(shape.dim(static_cast<int>(split)), s.after.dimensions[split].count()));
  const std::vector<int64_t> before = dims_of(b_, x);
  // The blocks for each partner become a dimension of their own, before the dimension that is split.
  std::vector<int64_t> cut = before;
  cut[split] /= n;
  cut.insert(cut.begin() + static_cast<std::ptrdiff_t>(split), n);
  auto* attrs = module_.make<AllToAllAttrs>();
  attrs->groups = groups_along(s, groups, false);
  attrs->channel = ++channels_;
  attrs->dimension = module_.dims({static_cast<int64_t>(split)});
  const InstrId blocks = b_.reshape(x, cut);
  const InstrId swapped = b_.op(Op::ALL_TO_ALL, b_.shape(blocks), {blocks}, attrs);
  // After the all-to-all the dimension of the partners is transposed to before the dimension that is joined.
  const size_t target = join < split ? join : join + 1;
  std::vector<int64_t> order;
  for (size_t d = 0; d < cut.size(); ++d) {
    if (d == target) order.push_back(static_cast<int64_t>(split));
    if (d != split) order.push_back(static_cast<int64_t>(d));
  }
  std::vector<int64_t> after = before;
  after[split] /= n;
  after[join] *= n;
  const InstrId joined = b_.reshape(b_.transpose(swapped, order), after);
  return cut_to(joined, join, tile_size(shape.dim(static_cast<int>(join)), s.after.dimensions[join].count()));
}

InstrId TileBuilder::collective_permute(InstrId x, const std::vector<int64_t>& pairs) {
  auto* attrs = module_.make<CollectivePermuteAttrs>();
  attrs->pairs = module_.dims(pairs);
  attrs->channel = ++channels_;
  return b_.op(Op::COLLECTIVE_PERMUTE, b_.shape(x), {x}, attrs);
}

// Each partition receives its new tile from a partition that has it, which may be itself.
InstrId TileBuilder::permute(InstrId x, const ReshardStep& s, const DeviceGroups& groups) {
  const DeviceGroups inside = within(groups, s.after.unreduced);
  const auto tile = [&](const ArraySharding& sharding, size_t p) {
    std::vector<int64_t> out{inside.group[p]};
    for (const DimensionSharding& d : sharding.dimensions) out.push_back(d.tile(p));
    return out;
  };
  std::map<std::vector<int64_t>, std::vector<int64_t>> holders;
  std::vector<size_t> others;
  std::vector<int64_t> pairs;
  for (size_t p = 0; p < groups.partitions(); ++p) {
    if (tile(s.before, p) == tile(s.after, p)) {
      pairs.insert(pairs.end(), {static_cast<int64_t>(p), static_cast<int64_t>(p)});
      continue;
    }
    holders[tile(s.before, p)].push_back(static_cast<int64_t>(p));
    others.push_back(p);
  }
  for (size_t p : others) {
    auto& from = holders[tile(s.after, p)];
    if (from.empty()) return b_.fail(internal_error("a tile that is to be permuted is with nobody"));
    pairs.insert(pairs.end(), {from.front(), static_cast<int64_t>(p)});
    from.erase(from.begin());
  }
  return collective_permute(x, pairs);
}

InstrId TileBuilder::mirror_tiles(InstrId x, const ArraySharding& sharding, size_t dim, const DeviceGroups& groups) {
  std::vector<int64_t> pairs;
  for (const auto& group : groups_across(sharding.dimensions, std::span(&dim, 1), within(groups, sharding.unreduced)))
    for (size_t i = 0; i < group.size(); ++i) pairs.insert(pairs.end(), {group[group.size() - 1 - i], group[i]});
  return collective_permute(x, pairs);
}

InstrId TileBuilder::on_first_tile(InstrId x, const DimensionSharding& along) {
  const std::vector<int64_t> tiles(along.tiles().begin(), along.tiles().end());
  const InstrId first = b_.compare(from_table(tiles), Direction::EQ, b_.scalar_int(b_.index_type(), 0));
  const std::vector<int64_t> dims = dims_of(b_, x);
  return b_.select(b_.broadcast(first, dims, {}), x, b_.fill_int(Shape(b_.shape(x)), 0));
}

InstrId TileBuilder::spread_terms(InstrId x, const ReshardStep& s) {
  std::vector<int64_t> dims = dims_of(b_, x);
  const int64_t tile = dims[s.dim];
  dims[s.dim] *= s.along.count();
  std::vector<InstrId> starts(dims.size(), b_.scalar_int(b_.index_type(), 0));
  starts[s.dim] = tile_offset(s.along, tile);
  return b_.dynamic_update_slice(b_.fill_int(Shape::array(b_.type(x), dims), 0), x, starts);
}

InstrId TileBuilder::mask_padding(InstrId x, size_t dim, const DimensionSharding& sharding, int64_t size,
                                  InstrId fill) {
  const std::vector<int64_t> dims = dims_of(b_, x);
  if (size == dims[dim] * sharding.count()) return x;
  const Shape indices = Shape::array(b_.index_type(), dims);
  const InstrId index =
      b_.add(b_.iota(indices, static_cast<int64_t>(dim)), b_.broadcast(tile_offset(sharding, dims[dim]), dims, {}));
  const InstrId inside = b_.compare(index, Direction::LT, b_.fill_int(indices, size));
  return b_.select(inside, x, b_.broadcast(fill, dims, {}));
}

InstrId TileBuilder::halo(InstrId x, const ArraySharding& sharding, size_t dim, const InputWindow& window, InstrId fill,
                          const DeviceGroups& groups) {
  const DimensionSharding& split = sharding.dimensions[dim];
  const int64_t size = window.size, n = split.count();
  const auto plan = plan_halo(n, window);
  if (!plan) return b_.fail(internal_error("a halo that cannot be had"));
  const auto members = groups_across(sharding.dimensions, std::span(&dim, 1), within(groups, sharding.unreduced));
  std::vector<InstrId> pieces;
  for (const HaloPlan::Piece& piece : plan->pieces) {
    if (piece.is_outside()) {
      std::vector<int64_t> outside = dims_of(b_, x);
      outside[dim] = piece.length;
      pieces.push_back(b_.fill_int(Shape::array(b_.type(x), outside), 0));
      continue;
    }
    const InstrId slab = b_.slice_dim(x, static_cast<int64_t>(dim), piece.start, piece.limit);
    if (piece.distance == 0) {
      pieces.push_back(slab);
    } else {
      std::vector<int64_t> pairs;
      for (const auto& group : members)
        for (const auto& [from, to] : piece.targets)
          pairs.insert(pairs.end(), {group[static_cast<size_t>(from)], group[static_cast<size_t>(to)]});
      pieces.push_back(collective_permute(slab, pairs));
    }
  }
  InstrId out = pieces.size() == 1 ? pieces[0] : b_.concatenate(pieces, static_cast<int64_t>(dim));
  std::vector<int64_t> dims = dims_of(b_, out);
  const int64_t has = dims[dim];
  dims[dim] = window.length;
  const auto& offsets = plan->offsets;
  if (std::all_of(offsets.begin(), offsets.end(), [&](int64_t o) { return o == offsets[0]; })) {
    if (offsets[0] != 0 || has != window.length)
      out = b_.slice_dim(out, static_cast<int64_t>(dim), offsets[0], offsets[0] + window.length);
  } else {
    std::vector<int64_t> by_partition;
    for (int64_t tile : split.tiles()) by_partition.push_back(offsets[static_cast<size_t>(tile)]);
    std::vector<InstrId> starts(dims.size(), b_.scalar_int(b_.index_type(), 0));
    starts[dim] = from_table(by_partition);
    out = b_.dynamic_slice(out, starts, dims);
  }
  const bool outside = window.offset < 0 || window.offset + window.step * (n - 1) < 0 ||
                       window.offset + window.length > size ||
                       window.offset + window.step * (n - 1) + window.length > size;
  if (fill == InstrId::None || !outside) return out;
  const Shape indices = Shape::array(b_.index_type(), dims);
  const InstrId index = b_.add(b_.iota(indices, static_cast<int64_t>(dim)),
                               b_.broadcast(tile_offset(split, window.step, window.offset), dims, {}));
  const InstrId inside = b_.and_(b_.compare(index, Direction::GE, b_.fill_int(indices, 0)),
                                 b_.compare(index, Direction::LT, b_.fill_int(indices, size)));
  return b_.select(inside, out, b_.broadcast(fill, dims, {}));
}

InstrId TileBuilder::broadcast_from(InstrId x, int64_t source, size_t partitions) {
  const Shape shape = b_.shape(x);
  if (shape.is_tuple()) {
    std::vector<InstrId> parts;
    for (size_t i = 0; i < shape.elements().size(); ++i)
      parts.push_back(broadcast_from(b_.get(x, static_cast<int64_t>(i)), source, partitions));
    return b_.tuple(parts);
  }
  if (!shape.is_array()) return x;
  std::vector<int64_t> group{source};
  for (size_t p = 0; p < partitions; ++p)
    if (static_cast<int64_t>(p) != source) group.push_back(static_cast<int64_t>(p));
  auto* attrs = module_.make<CollectiveAttrs>();
  attrs->groups = to_groups({group}, partitions, false);
  attrs->channel = ++channels_;
  return b_.op(Op::COLLECTIVE_BROADCAST, shape, {x}, attrs);
}

}  // namespace collet::hlo::spmd
