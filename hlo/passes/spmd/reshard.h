// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "hlo/ir/shape.h"
#include "hlo/passes/spmd/array_sharding.h"

/// \file
/// Plans how an array with one sharding becomes the same array with another: a list of steps, with the bytes that each
/// moves. A plan only describes the steps; collectives.h writes them.

namespace collet::hlo::spmd {

/// One step of a reshard. `along` holds the mesh axes along which data is moved, as the sharding of one dimension.
struct ReshardStep {
  enum class Kind : uint8_t {
    AllReduce,      ///< sums over the tiles of `along`
    ReduceScatter,  ///< sums over the tiles of `along`, which split dimension `dim` afterwards
    Slice,          ///< `along` splits dimension `dim` further; nothing is moved
    AllGather,      ///< `along`, the minor part of dimension `dim`, no longer splits it
    AllToAll,       ///< `along` goes from dimension `from_dim` to dimension `dim`
    Permute,        ///< tiles go to other partitions; shapes stay
    MaskTerms,      ///< the value stays on the first tile of `along` and is zero on the others: a partial value
    SpreadTerms     ///< tiles of dimension `dim` along `along` become terms of a partial value, zero elsewhere
  };
  Kind kind = Kind::Slice;
  size_t dim = 0;
  size_t from_dim = 0;
  DimensionSharding along;
  ArraySharding before, after;
  double bytes = 0;  ///< bytes that one participant sends, counted as in traffic.h
};

/// The steps of a reshard, in order.
struct ReshardPlan {
  std::vector<ReshardStep> steps;
  double bytes = 0;

  /// Returns a text for tests, for example "reduce-scatter 0, all-gather 1".
  std::string to_string() const;
};

/// Plans a reshard from `from` to `to`. Precondition for each of the two shardings: within each device group, every
/// combination of tiles of its dimensions occurs, and all combinations occur equally often. Dimensions that do not split
/// evenly are padded at the end.
ReshardPlan plan_reshard(const Shape& shape, const ArraySharding& from, const ArraySharding& to,
                         const DeviceGroups& groups);
/// Returns the bytes that this plan moves.
double reshard_bytes(const Shape& shape, const ArraySharding& from, const ArraySharding& to,
                     const DeviceGroups& groups);

/// Returns the shape of one tile.
Shape tile_shape(const Shape& shape, const ArraySharding& sharding);
/// Returns the size of one tile in bytes.
double tile_bytes(const Shape& shape, const ArraySharding& sharding);

}  // namespace collet::hlo::spmd
