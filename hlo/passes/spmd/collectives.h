// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <vector>

#include "hlo/passes/builder.h"
#include "hlo/passes/spmd/reshard.h"
#include "hlo/passes/spmd/sharding_rule.h"

/// \file
/// Writes what one partition does into a computation: tiles, masks, halos, and the collectives between partitions.

namespace collet::hlo::spmd {

/// Writes where a builder stands. Values of an earlier reshard are used again.
class TileBuilder {
 public:
  /// `channels`: numbers of collectives, counted over the module.
  TileBuilder(Module& module, CompId computation, int64_t replicas, int64_t& channels)
      : module_(module), b_(module, computation), replicas_(replicas), channels_(channels) {}

  Builder& builder() { return b_; }

  /// `x`, a tile by `from` of an array of that shape, as a tile by `to`. `combine` makes one of partial results; None
  /// adds them.
  InstrId reshard(InstrId x, const Shape& shape, const ArraySharding& from, const ArraySharding& to,
                  const DeviceGroups& groups, CompId combine = CompId::None);
  /// `x` where partitions have the first tile of `along`, zeros elsewhere: the sum over `along` is `x`.
  InstrId on_first_tile(InstrId x, const DimensionSharding& along);
  /// `x`, whose dimension `dim` of `size` elements is split by `sharding`, with `fill`, a scalar, in the padding at its
  /// end.
  InstrId mask_padding(InstrId x, size_t dim, const DimensionSharding& sharding, int64_t size, InstrId fill);
  /// The window that each tile of dimension `dim` needs, elements outside of the array replaced by `fill` unless that is
  /// None. `x` is a tile by `sharding`.
  InstrId halo(InstrId x, const ArraySharding& sharding, size_t dim, const InputWindow& window, InstrId fill,
               const DeviceGroups& groups);
  /// `x` from the partition with the mirrored tile: tile i of n gets tile n - 1 - i.
  InstrId mirror_tiles(InstrId x, const ArraySharding& sharding, size_t dim, const DeviceGroups& groups);
  /// Returns the value that `x` has on partition `source`; for a tuple, that of each array.
  InstrId broadcast_from(InstrId x, int64_t source, size_t partitions);
  /// `step` times the tile of `sharding` that this partition has, plus `offset`: a scalar s32.
  InstrId tile_offset(const DimensionSharding& sharding, int64_t step, int64_t offset = 0);
  /// The number in `by_partition` of this partition, a scalar s32.
  InstrId from_table(const std::vector<int64_t>& by_partition);

  /// This partition's number, u32; made where it is first wanted.
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
  /// Partitions that differ along `along` alone, as ids of replica * partitions + partition, or of partitions.
  Groups groups_along(const ReshardStep& step, const DeviceGroups& groups, bool global);
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
