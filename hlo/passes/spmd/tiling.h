// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hlo/ir/sharding.h"
#include "hlo/ir/shardy.h"

/// \file
/// How an array lies on the partitions, by table: the tile that each of them has of each dimension. Any mesh, any order of
/// devices and any mixture of splitting and copying is such a table.

namespace collet::hlo::spmd {

/// One dimension: how many tiles, and which of them each partition has.
struct Column {
  int64_t count = 1;
  std::vector<int64_t> at;  ///< by partition; empty where count is 1
  bool whole() const { return count == 1; }
  int64_t of(size_t partition) const { return count == 1 ? 0 : at[partition]; }
  auto operator<=>(const Column&) const = default;
};

/// All dimensions of an array.
using Tiling = std::vector<Column>;
inline Tiling whole(size_t rank) {
  return Tiling(rank);
}
bool is_whole(const Tiling& tiling);

/// Who takes part. Inside of manual computations partitions work together only with those of the same domain.
struct World {
  std::vector<int64_t> domain;  ///< of each partition
  size_t partitions() const { return domain.size(); }
  /// Everybody works with everybody.
  bool together() const;
  /// Nobody works with anybody.
  bool alone() const;
};

/// The same among those alone whom `column` does not tell apart.
World within(const World& world, const Column& column);

/// Every combination of tiles occurs, in every domain, and equally often: so the columns do not depend on each other.
bool fits(const Tiling& tiling, const World& world);
/// The larger and the smaller step of a column, whose product it is: `low` tiles in each of the others.
Column high_part(const Column& column, int64_t low);
Column low_part(const Column& column, int64_t low);
/// `high` counts more.
Column joined(const Column& high, const Column& low);
/// `fine` splits each tile of `coarse` into further ones.
bool refines(const Column& fine, const Column& coarse);

/// Both tell the same partitions apart, by whatever numbers.
bool same_parts(const Column& a, const Column& b);
/// What tells apart those whom `coarse` does not; nothing where `fine` is not finer than that or its parts are not equal.
std::optional<Column> remainder(const Column& fine, const Column& coarse);

/// Partitions that differ in the dimensions `across` alone, in the order of those tiles: each tile once in a group.
std::vector<std::vector<int64_t>> groups_across(const Tiling& tiling, std::span<const size_t> across,
                                                const World& world);

/// Nothing where the sharding is none of an array of that rank on so many partitions. `open`: where sums are left open;
/// null refuses those.
std::optional<Tiling> from_sharding(const Sharding& sharding, size_t rank, size_t partitions, Column* open = nullptr);
/// By parts of a mesh's axes; `keep` says which axes count.
std::optional<Tiling> from_axes(const NamedMesh& mesh, const std::vector<std::vector<AxisPart>>& dimensions,
                                const std::vector<bool>& keep, size_t partitions);
/// A list of devices; replicated where nothing is split.
Sharding to_sharding(const Tiling& tiling, size_t partitions, const Column& open = {});

}  // namespace collet::hlo::spmd
