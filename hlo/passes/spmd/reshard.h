// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "hlo/ir/shape.h"
#include "hlo/passes/spmd/array_sharding.h"

/// \file
/// How an array of one sharding becomes the same array of another: a list of steps, with the bytes that each moves. The
/// plan is data; collectives.h writes it.

namespace collet::hlo::spmd {

/// One step of a reshard. What is moved along what is in `along`: the mesh axes, as the sharding of one dimension.
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
  double bytes = 0;  ///< that one participant sends; see traffic.h
};

/// The steps, in order.
struct ReshardPlan {
  std::vector<ReshardStep> steps;
  double bytes = 0;

  /// For tests: "reduce-scatter 0, all-gather 1".
  std::string to_string() const;
};

/// From `from` to `to`, which are consistent among `groups`. Dimensions that do not split evenly are padded at the end.
ReshardPlan plan_reshard(const Shape& shape, const ArraySharding& from, const ArraySharding& to,
                         const DeviceGroups& groups);
/// The bytes of that plan.
double reshard_bytes(const Shape& shape, const ArraySharding& from, const ArraySharding& to,
                     const DeviceGroups& groups);

/// The shape of one tile.
Shape tile_shape(const Shape& shape, const ArraySharding& sharding);
/// Returns the size of one tile in bytes.
double tile_bytes(const Shape& shape, const ArraySharding& sharding);

}  // namespace collet::hlo::spmd
