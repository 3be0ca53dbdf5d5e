// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/spmd/emitter.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "hlo/passes/spmd/remake.h"

namespace collet::hlo::spmd {
namespace {

std::vector<int64_t> dims_of(const Builder& b, InstrId x) {
  const Shape& shape = b.shape(x);
  return {shape.dims().begin(), shape.dims().end()};
}

}  // namespace

InstrId Emitter::partition_id() {
  used_ = true;
  if (partition_id_ == InstrId::None) partition_id_ = b_.op(Op::PARTITION_ID, Shape::array(Type::U32, {}), {});
  return partition_id_;
}

InstrId Emitter::from_table(const std::vector<int64_t>& by_partition) {
  const auto known = tables_.find(by_partition);
  if (known != tables_.end()) return known->second;
  const std::array<InstrId, 1> start = {partition_id()};
  const std::array<int64_t, 1> one = {1};
  const InstrId entry = b_.dynamic_slice(b_.ints(Type::S32, by_partition), start, one);
  return tables_[by_partition] = b_.reshape(entry, {});
}

// From a tile of `from` to one of `to`, which lies in it.
InstrId Emitter::slice_dim(InstrId x, size_t dim, const Column& from, const Column& to) {
  std::vector<int64_t> sizes = dims_of(b_, x), offsets;
  const int64_t parts = to.count / from.count, size = sizes[dim] / parts;
  for (size_t p = 0; p < to.at.size(); ++p) offsets.push_back(to.of(p) % parts * size);
  sizes[dim] = size;
  if (const InstrId made = remake(b_, x, dim, from_table(offsets), size); made != InstrId::None) return made;
  std::vector<InstrId> starts(sizes.size(), b_.scalar_int(Type::S32, 0));
  starts[dim] = from_table(offsets);
  return b_.dynamic_slice(x, starts, sizes);
}

Groups Emitter::groups(const std::vector<std::vector<int64_t>>& groups, bool global, const World& world) {
  std::vector<Dims> lists;
  for (int64_t replica = 0; replica < (global ? replicas_ : 1); ++replica)
    for (std::vector<int64_t> group : groups) {
      for (int64_t& id : group) id += replica * static_cast<int64_t>(world.partitions());
      lists.push_back(module_.dims(group));
    }
  Groups out;
  out.groups = module_.arena().list<const Dims>(lists);
  return out;
}

InstrId Emitter::all_reduce(InstrId x, CompId combine, const Tiling& tiling, std::span<const size_t> across,
                            const World& world) {
  auto* attrs = module_.make<CollectiveAttrs>();
  attrs->groups = groups(groups_across(tiling, across, world), true, world);
  attrs->channel = ++channels_;
  attrs->global_ids = true;
  return b_.op(Op::ALL_REDUCE, b_.shape(x), {x}, attrs, std::span(&combine, 1));
}

InstrId Emitter::only_first(InstrId x, const Column& column) {
  const InstrId first = b_.compare(from_table(column.at), Direction::EQ, b_.scalar_int(Type::S32, 0));
  const std::vector<int64_t> dims = dims_of(b_, x);
  return b_.select(b_.broadcast(first, dims, {}), x, b_.fill_int(Shape(b_.shape(x)), 0));
}

InstrId Emitter::spread(InstrId x, size_t dim, const Column& column) {
  std::vector<int64_t> dims = dims_of(b_, x), offsets;
  for (int64_t tile : column.at) offsets.push_back(tile * dims[dim]);
  dims[dim] *= column.count;
  std::vector<InstrId> starts(dims.size(), b_.scalar_int(Type::S32, 0));
  starts[dim] = from_table(offsets);
  return b_.dynamic_update_slice(b_.fill_int(Shape::array(b_.type(x), dims), 0), x, starts);
}

InstrId Emitter::from_one(InstrId x, int64_t source, const World& world) {
  const Shape shape = b_.shape(x);
  if (shape.is_tuple()) {
    std::vector<InstrId> parts;
    for (size_t i = 0; i < shape.elements().size(); ++i)
      parts.push_back(from_one(b_.get(x, static_cast<int64_t>(i)), source, world));
    return b_.tuple(parts);
  }
  if (!shape.is_array()) return x;
  std::vector<int64_t> group{source};
  for (size_t p = 0; p < world.partitions(); ++p)
    if (static_cast<int64_t>(p) != source) group.push_back(static_cast<int64_t>(p));
  auto* attrs = module_.make<CollectiveAttrs>();
  attrs->groups = groups({group}, false, world);
  attrs->channel = ++channels_;
  return b_.op(Op::COLLECTIVE_BROADCAST, shape, {x}, attrs);
}

InstrId Emitter::gather_dim(InstrId x, const Tiling& tiling, size_t dim, const World& world) {
  auto* attrs = module_.make<CollectiveDimAttrs>();
  attrs->groups = groups(groups_across(tiling, std::array{dim}, world), true, world);
  attrs->channel = ++channels_;
  attrs->global_ids = true;
  attrs->dimension = static_cast<int64_t>(dim);
  std::vector<int64_t> dims = dims_of(b_, x);
  dims[dim] *= tiling[dim].count;
  return b_.op(Op::ALL_GATHER, Shape::array(b_.type(x), dims), {x}, attrs);
}

// Splits dimension `split`, which was whole, by the column of dimension `join`, which becomes whole.
InstrId Emitter::exchange(InstrId x, const Tiling& tiling, size_t split, size_t join, const World& world) {
  const int64_t n = tiling[join].count;
  const std::vector<int64_t> before = dims_of(b_, x);
  // The blocks for each partner get a dimension of their own, before the one that they are cut from.
  std::vector<int64_t> cut = before;
  cut[split] /= n;
  cut.insert(cut.begin() + static_cast<std::ptrdiff_t>(split), n);
  auto* attrs = module_.make<AllToAllAttrs>();
  attrs->groups = groups(groups_across(tiling, std::array{join}, world), false, world);
  attrs->channel = ++channels_;
  attrs->dimension = module_.dims({static_cast<int64_t>(split)});
  const InstrId blocks = b_.reshape(x, cut);
  const InstrId swapped = b_.op(Op::ALL_TO_ALL, b_.shape(blocks), {blocks}, attrs);
  // Which then goes before the dimension that is joined.
  const size_t target = join < split ? join : join + 1;
  std::vector<int64_t> order;
  for (size_t d = 0; d < cut.size(); ++d) {
    if (d == target) order.push_back(static_cast<int64_t>(split));
    if (d != split) order.push_back(static_cast<int64_t>(d));
  }
  std::vector<int64_t> after = before;
  after[split] /= n;
  after[join] *= n;
  return b_.reshape(b_.transpose(swapped, order), after);
}

InstrId Emitter::reshard(InstrId x, Tiling from, const Tiling& to, const World& world) {
  if (from == to || !b_.status().ok()) return x;
  const auto sized = [&](size_t d) { return dims_of(b_, x)[d]; };
  // A split that moves from one dimension to another.
  for (size_t i = 0; i < from.size(); ++i)
    for (size_t j = 0; j < from.size(); ++j)
      if (i != j && !from[i].whole() && to[i].whole() && from[j].whole() && to[j] == from[i] &&
          sized(j) % to[j].count == 0) {
        x = exchange(x, from, j, i, world);
        std::swap(from[i], from[j]);
      }
  // Cut what can be cut before the rest is gathered: less to send.
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] == to[d] || !refines(to[d], from[d])) continue;
    Tiling next = from;
    next[d] = to[d];
    if (!fits(next, world)) continue;
    x = slice_dim(x, d, from[d], to[d]);
    from = std::move(next);
  }
  for (size_t d = 0; d < from.size(); ++d)
    if (from[d] != to[d] && !from[d].whole()) {
      x = gather_dim(x, from, d, world);
      from[d] = Column();
    }
  for (size_t d = 0; d < from.size(); ++d)
    if (from[d] != to[d]) {
      x = slice_dim(x, d, from[d], to[d]);
      from[d] = to[d];
    }
  return x;
}

}  // namespace collet::hlo::spmd
