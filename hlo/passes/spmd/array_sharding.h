// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hlo/ir/sharding.h"
#include "hlo/ir/shardy.h"

/// \file
/// Represents shardings as tables that list for each dimension the tile of each partition. Every mesh, order of devices
/// and mixture of splitting and replication has such a table.

namespace collet::hlo::spmd {

/// The sharding of one dimension: the number of tiles, and the tile of each partition. Copies share the table.
class DimensionSharding {
 public:
  /// Makes the sharding of a dimension that is not split: every partition has the whole dimension.
  DimensionSharding() = default;
  /// `tiles[p]`, less than `count`, is the tile of partition p. With a count of 1 the dimension is not split.
  DimensionSharding(int64_t count, std::vector<int64_t> tiles);

  /// Number of tiles; 1 where the dimension is not split.
  int64_t count() const { return count_; }
  /// Whether there is more than one tile.
  bool is_split() const { return count_ > 1; }
  /// The tile of a partition; 0 where the dimension is not split.
  int64_t tile(size_t partition) const { return tiles_ ? (*tiles_)[partition] : 0; }
  /// Tiles by partition; empty where the dimension is not split.
  std::span<const int64_t> tiles() const {
    return tiles_ ? std::span<const int64_t>(*tiles_) : std::span<const int64_t>();
  }

  bool operator==(const DimensionSharding& other) const {
    return count_ == other.count_ && (tiles_ == other.tiles_ || *tiles_ == *other.tiles_);
  }

 private:
  int64_t count_ = 1;
  std::shared_ptr<const std::vector<int64_t>> tiles_;
};

/// The sharding of one array.
struct ArraySharding {
  std::vector<DimensionSharding> dimensions;
  /// The array is partial if this is split: its value is the sum over these tiles.
  DimensionSharding unreduced;

  ArraySharding() = default;
  /// Makes a replicated sharding for an array of that rank.
  explicit ArraySharding(size_t rank) : dimensions(rank) {}
  ArraySharding(std::vector<DimensionSharding> d, DimensionSharding u = {})
      : dimensions(std::move(d)), unreduced(std::move(u)) {}

  /// True if every partition has the whole array, and it is not partial.
  bool is_replicated() const;
  /// Whether no dimension is split.
  bool is_whole() const;
  bool operator==(const ArraySharding&) const = default;
};

/// Groups of partitions that compute together. In a computation that is manual along some mesh axes, partitions with
/// different coordinates along these axes are in different groups.
struct DeviceGroups {
  std::vector<int64_t> group;  ///< the number of the group of each partition

  /// Returns a single group with all partitions.
  static DeviceGroups one(size_t partitions) { return {std::vector<int64_t>(partitions)}; }
  size_t partitions() const { return group.size(); }
  /// True if there is one group.
  bool all_together() const;
  /// True if each partition is a group of its own.
  bool all_apart() const;
  bool operator==(const DeviceGroups&) const = default;
};

/// Splits the groups: partitions that `d` gives different tiles are no longer in one group.
DeviceGroups within(const DeviceGroups& groups, const DimensionSharding& d);

/// True if in each group every combination of tiles occurs, and all occur equally often. The dimensions then use
/// different mesh axes.
bool are_independent(std::span<const DimensionSharding> dimensions, const DeviceGroups& groups);
/// Does the same check for all dimensions of an array and for the axes along which it is unreduced.
bool is_consistent(const ArraySharding& sharding, const DeviceGroups& groups);

/// Returns the size of the tiles of a dimension of `size`: the last tiles may be padded.
inline int64_t tile_size(int64_t size, int64_t count) {
  return (size + count - 1) / count;
}
/// True if each of `count * parts` tiles is inside one of `count` tiles, padding at the end aside.
inline bool are_nested(int64_t size, int64_t count, int64_t parts) {
  return tile_size(size, count) == parts * tile_size(size, count * parts);
}

/// Returns `d` without its `minor` innermost parts: the outer mesh axes. `minor` must divide the count.
DimensionSharding major_part(const DimensionSharding& d, int64_t minor);
/// Returns the `minor` innermost parts of `d`: the inner mesh axes.
DimensionSharding minor_part(const DimensionSharding& d, int64_t minor);
/// Returns the sharding that splits by `major`, and each of its tiles by `minor`.
DimensionSharding compose(const DimensionSharding& major, const DimensionSharding& minor);
/// Whether `fine` splits each tile of `coarse` further.
bool refines(const DimensionSharding& fine, const DimensionSharding& coarse);
/// True if both put the same partitions into different tiles, whatever the order of the tiles.
bool same_split(const DimensionSharding& a, const DimensionSharding& b);
/// Returns the sharding of a tile of `coarse` into tiles of `fine`; nothing if `fine` does not split the tiles of `coarse` into
/// equally many.
std::optional<DimensionSharding> quotient(const DimensionSharding& fine, const DimensionSharding& coarse);

/// Returns the groups of partitions whose tiles differ in the dimensions `across` only. A group is in the order of
/// those tiles, and has each tile once.
std::vector<std::vector<int64_t>> groups_across(std::span<const DimensionSharding> dimensions,
                                                std::span<const size_t> across, const DeviceGroups& groups);

/// Converts a sharding of an array of rank `rank`. Returns nothing if it does not fit the rank or the number of partitions.
std::optional<ArraySharding> from_hlo_sharding(const Sharding& sharding, size_t rank, size_t partitions);
/// Converts the mesh axes of each dimension; axes that are not in `keep` are ignored.
std::optional<std::vector<DimensionSharding>> from_mesh_axes(const NamedMesh& mesh,
                                                             const std::vector<std::vector<AxisPart>>& dimensions,
                                                             const std::vector<bool>& keep, size_t partitions);
/// Converts to the form of HLO text, with the list of devices as an iota if possible.
Sharding to_hlo_sharding(const ArraySharding& sharding, size_t partitions);
/// Returns the text of the sharding that to_hlo_sharding returns.
std::string to_string(const ArraySharding& sharding, size_t partitions);

}  // namespace collet::hlo::spmd
