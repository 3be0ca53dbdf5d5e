// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <vector>

#include "hlo/passes/builder.h"
#include "hlo/passes/spmd/reshard.h"
#include "hlo/passes/spmd/sharding_rule.h"

/// \file
/// Builds the ops of one partition: tiles, masks, halos, and the collectives between partitions.

namespace collet::hlo::spmd {

/// Inserts instructions at the position of a builder. A reshard of the same value to the same sharding is built once.
class TileBuilder {
 public:
  /// `channels` is the counter for the channel numbers of collectives of the module. `index_type` is that of positions in
  /// its arrays.
  TileBuilder(Module& module, CompId computation, int64_t replicas, int64_t& channels, Type index_type)
      : module_(module), b_(module, computation), replicas_(replicas), channels_(channels) {
    b_.set_index_type(index_type);
  }

  Builder& builder() { return b_; }

  /// Converts `x`, a tile by the sharding `from` of an array of that shape, to a tile by the sharding `to`. `combine`
  /// is the computation that combines partial results; None means addition.
  InstrId reshard(InstrId x, const Shape& shape, const ArraySharding& from, const ArraySharding& to,
                  const DeviceGroups& groups, CompId combine = CompId::None);
  /// Returns `x` on partitions with the first tile of `along`, and zeros elsewhere, so that the sum over `along` is
  /// `x`.
  InstrId on_first_tile(InstrId x, const DimensionSharding& along);
  /// Returns `x` with the scalar `fill` in the padding at the end of dimension `dim`, which has `size` elements and is
  /// split by `sharding`.
  InstrId mask_padding(InstrId x, size_t dim, const DimensionSharding& sharding, int64_t size, InstrId fill);
  /// Returns the window that each tile of dimension `dim` needs. Elements outside of the array are replaced by `fill`,
  /// unless that is None. `x` is a tile by `sharding`.
  InstrId halo(InstrId x, const ArraySharding& sharding, size_t dim, const InputWindow& window, InstrId fill,
               const DeviceGroups& groups);
  /// Returns `x` of the partition with the mirrored tile: tile i of n gets tile n - 1 - i.
  InstrId mirror_tiles(InstrId x, const ArraySharding& sharding, size_t dim, const DeviceGroups& groups);
  /// Returns the value that `x` has on partition `source`; for a tuple, that of each array.
  InstrId broadcast_from(InstrId x, int64_t source, size_t partitions);
  /// Returns `step` times the number of this partition's tile by `sharding`, plus `offset`: a scalar of
  /// builder().index_type().
  InstrId tile_offset(const DimensionSharding& sharding, int64_t step, int64_t offset = 0);
  /// Returns the entry of `by_partition` for this partition, a scalar of builder().index_type().
  InstrId from_table(const std::vector<int64_t>& by_partition);

  /// Returns this partition's number, a u32 scalar; the instruction is created at the first call.
  InstrId partition_id();
  void set_partition_id(InstrId id) { partition_id_ = id; }

 private:
  InstrId step(InstrId x, const Shape& shape, const ReshardStep& step, const DeviceGroups& groups, CompId combine);
  InstrId slice(InstrId x, const Shape& shape, const ReshardStep& step);
  InstrId all_gather(InstrId x, const Shape& shape, const ReshardStep& step, const DeviceGroups& groups);
  InstrId all_to_all(InstrId x, const Shape& shape, const ReshardStep& step, const DeviceGroups& groups);
  InstrId permute(InstrId x, const ReshardStep& step, const DeviceGroups& groups);
  InstrId collective_permute(InstrId x, const std::vector<int64_t>& pairs);
  InstrId reduce(InstrId x, const Shape& shape, const ReshardStep& step, const DeviceGroups& groups, CompId combine);
  InstrId spread_terms(InstrId x, const ReshardStep& step);
  InstrId pad_to(InstrId x, size_t dim, int64_t size);
  InstrId cut_to(InstrId x, size_t dim, int64_t size);
  /// Returns groups of partitions that differ along `along` only, as ids replica * partitions + partition if `global`,
  /// else as partition numbers.
  Groups groups_along(const ReshardStep& step, const DeviceGroups& groups, bool global);
  /// Returns the attributes of a collective of the partitions along the step's dimension, on a channel of its own.
  const CollectiveDimAttrs* dimension_attrs(const ReshardStep& step, const DeviceGroups& groups);
  Groups to_groups(const std::vector<std::vector<int64_t>>& lists, size_t partitions, bool global);

  struct DoneReshard {
    ArraySharding from, to;
    DeviceGroups groups;
    InstrId id = InstrId::None;
  };

  Module& module_;
  Builder b_;
  int64_t replicas_;
  int64_t& channels_;
  InstrId partition_id_ = InstrId::None;
  std::map<std::vector<int64_t>, InstrId> tables_;
  std::map<InstrId, std::vector<DoneReshard>> done_reshards_;
};

}  // namespace collet::hlo::spmd
