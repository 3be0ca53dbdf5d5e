// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/spmd/array_sharding.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

namespace collet::hlo::spmd {
namespace {

// Returns the devices of a tile assignment in row-major order.
std::vector<int64_t> assignment(const Sharding& s) {
  if (!s.iota) return s.devices;
  std::vector<int64_t> strides(s.reshape.size(), 1), permutation = s.permutation;
  if (permutation.empty()) {
    permutation.resize(s.reshape.size());
    std::iota(permutation.begin(), permutation.end(), int64_t{0});
  }
  int64_t total = 1;
  for (size_t d = s.reshape.size(); d-- > 0;) {
    strides[d] = total;
    total *= s.reshape[d];
  }
  std::vector<int64_t> out(static_cast<size_t>(total)), index(permutation.size());
  for (int64_t& device : out) {
    device = 0;
    for (size_t i = 0; i < permutation.size(); ++i) device += index[i] * strides[static_cast<size_t>(permutation[i])];
    for (size_t i = permutation.size(); i-- > 0;) {
      if (++index[i] < s.reshape[static_cast<size_t>(permutation[i])]) break;
      index[i] = 0;
    }
  }
  return out;
}

}  // namespace

DimensionSharding::DimensionSharding(int64_t count, std::vector<int64_t> tiles) : count_(count) {
  if (count > 1) tiles_ = std::make_shared<const std::vector<int64_t>>(std::move(tiles));
}

bool ArraySharding::is_whole() const {
  return std::none_of(dimensions.begin(), dimensions.end(), [](const DimensionSharding& d) { return d.is_split(); });
}

bool ArraySharding::is_replicated() const {
  return is_whole() && !unreduced.is_split();
}

bool DeviceGroups::all_together() const {
  return std::all_of(group.begin(), group.end(), [&](int64_t g) { return g == group[0]; });
}

bool DeviceGroups::all_apart() const {
  return std::set<int64_t>(group.begin(), group.end()).size() == group.size();
}

DeviceGroups within(const DeviceGroups& groups, const DimensionSharding& d) {
  DeviceGroups out = groups;
  if (d.is_split())
    for (size_t p = 0; p < out.group.size(); ++p) out.group[p] = out.group[p] * d.count() + d.tile(p);
  return out;
}

bool are_independent(std::span<const DimensionSharding> dimensions, const DeviceGroups& groups) {
  const auto partitions = static_cast<int64_t>(groups.partitions());
  int64_t combinations = 1;
  for (const DimensionSharding& d : dimensions) {
    if (d.count() > partitions / combinations) return false;
    combinations *= d.count();
  }
  if (combinations == 1) return true;
  // By group: number of partitions for each combination of tiles.
  std::unordered_map<int64_t, std::vector<int64_t>> often;
  for (size_t p = 0; p < groups.partitions(); ++p) {
    int64_t place = 0;
    for (const DimensionSharding& d : dimensions) place = place * d.count() + d.tile(p);
    auto& places = often[groups.group[p]];
    if (places.empty()) places.resize(static_cast<size_t>(combinations));
    ++places[static_cast<size_t>(place)];
  }
  for (const auto& [group, places] : often)
    for (int64_t n : places)
      if (n == 0 || n != places[0]) return false;
  return true;
}

bool is_consistent(const ArraySharding& sharding, const DeviceGroups& groups) {
  if (!sharding.unreduced.is_split()) return are_independent(sharding.dimensions, groups);
  std::vector<DimensionSharding> all = sharding.dimensions;
  all.push_back(sharding.unreduced);
  return are_independent(all, groups);
}

DimensionSharding major_part(const DimensionSharding& d, int64_t minor) {
  if (minor == 1) return d;
  std::vector<int64_t> tiles;
  if (d.count() > minor)
    for (int64_t t : d.tiles()) tiles.push_back(t / minor);
  return {d.count() / minor, std::move(tiles)};
}

DimensionSharding minor_part(const DimensionSharding& d, int64_t minor) {
  if (minor == d.count()) return d;
  std::vector<int64_t> tiles;
  if (minor > 1)
    for (int64_t t : d.tiles()) tiles.push_back(t % minor);
  return {minor, std::move(tiles)};
}

DimensionSharding compose(const DimensionSharding& major, const DimensionSharding& minor) {
  if (!major.is_split()) return minor;
  if (!minor.is_split()) return major;
  std::vector<int64_t> tiles;
  for (size_t p = 0; p < major.tiles().size(); ++p) tiles.push_back(major.tile(p) * minor.count() + minor.tile(p));
  return {major.count() * minor.count(), std::move(tiles)};
}

bool refines(const DimensionSharding& fine, const DimensionSharding& coarse) {
  if (!coarse.is_split()) return true;
  return fine.count() % coarse.count() == 0 && major_part(fine, fine.count() / coarse.count()) == coarse;
}

std::optional<DimensionSharding> quotient(const DimensionSharding& fine, const DimensionSharding& coarse) {
  if (!coarse.is_split()) return fine;
  if (fine.count() % coarse.count() || !fine.is_split()) return std::nullopt;
  const int64_t count = fine.count() / coarse.count();
  std::map<int64_t, std::set<int64_t>> parts;  // tiles of `fine` in each tile of `coarse`
  for (size_t p = 0; p < fine.tiles().size(); ++p) parts[coarse.tile(p)].insert(fine.tile(p));
  std::map<int64_t, int64_t> place;
  for (const auto& [part, list] : parts) {
    if (static_cast<int64_t>(list.size()) != count) return std::nullopt;
    int64_t next = 0;
    for (int64_t number : list)
      if (!place.emplace(number, next++).second) return std::nullopt;  // the tile of `fine` is in two tiles of `coarse`
  }
  std::vector<int64_t> tiles;
  for (int64_t number : fine.tiles()) tiles.push_back(place[number]);
  return DimensionSharding(count, std::move(tiles));
}

bool same_split(const DimensionSharding& a, const DimensionSharding& b) {
  return a == b || (a.count() == b.count() && quotient(a, b));
}

std::vector<std::vector<int64_t>> groups_across(std::span<const DimensionSharding> dimensions,
                                                std::span<const size_t> across, const DeviceGroups& groups) {
  std::map<std::vector<int64_t>, int64_t> copies;
  std::map<std::vector<int64_t>, std::vector<std::pair<int64_t, int64_t>>> members;
  for (size_t p = 0; p < groups.partitions(); ++p) {
    std::vector<int64_t> all{groups.group[p]}, rest{groups.group[p]};
    int64_t place = 0;
    for (size_t d = 0; d < dimensions.size(); ++d) {
      all.push_back(dimensions[d].tile(p));
      if (std::find(across.begin(), across.end(), d) == across.end()) rest.push_back(dimensions[d].tile(p));
    }
    for (size_t d : across) place = place * dimensions[d].count() + dimensions[d].tile(p);
    // Partitions with the same tile are numbered, and those with equal numbers form a group.
    rest.push_back(copies[all]++);
    members[rest].emplace_back(place, static_cast<int64_t>(p));
  }
  std::vector<std::vector<int64_t>> out;
  for (auto& [key, list] : members) {
    std::sort(list.begin(), list.end());
    std::vector<int64_t>& group = out.emplace_back();
    for (const auto& [place, p] : list) group.push_back(p);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::optional<ArraySharding> from_hlo_sharding(const Sharding& sharding, size_t rank, size_t partitions) {
  ArraySharding out(rank);
  if (sharding.kind == Sharding::Kind::Replicated) return out;
  if (sharding.kind == Sharding::Kind::Unreduced) {
    std::vector<int64_t> tiles(partitions);
    std::iota(tiles.begin(), tiles.end(), int64_t{0});
    out.unreduced = {static_cast<int64_t>(partitions), std::move(tiles)};
    return out;
  }
  if (sharding.kind != Sharding::Kind::Tiled) return std::nullopt;
  const size_t extra = sharding.last_tile_dim_replicate ? 1 : sharding.last_tile_dims.size();
  size_t unreduced = SIZE_MAX;  // the tile dimension along which the array is partial
  for (size_t i = 0; i < sharding.last_tile_dims.size(); ++i) {
    if (sharding.last_tile_dims[i] == Sharding::Kind::Replicated) continue;
    if (sharding.last_tile_dims[i] != Sharding::Kind::Unreduced || unreduced != SIZE_MAX) return std::nullopt;
    unreduced = rank + i;
  }
  if (sharding.tile_dims.size() != rank + extra) return std::nullopt;
  const std::vector<int64_t> devices = assignment(sharding);
  int64_t total = 1;
  for (int64_t n : sharding.tile_dims) total *= n;
  if (total != static_cast<int64_t>(devices.size()) || devices.size() != partitions) return std::nullopt;
  std::vector<std::vector<int64_t>> tiles(sharding.tile_dims.size());
  for (size_t d = 0; d < tiles.size(); ++d) tiles[d].assign(partitions, -1);
  for (size_t place = 0; place < devices.size(); ++place) {
    const int64_t p = devices[place];
    if (p < 0 || p >= static_cast<int64_t>(partitions)) return std::nullopt;
    auto rest = static_cast<int64_t>(place);
    for (size_t d = sharding.tile_dims.size(); d-- > 0;) {
      tiles[d][static_cast<size_t>(p)] = rest % sharding.tile_dims[d];
      rest /= sharding.tile_dims[d];
    }
  }
  for (const auto& list : tiles)
    if (std::find(list.begin(), list.end(), -1) != list.end()) return std::nullopt;
  for (size_t d = 0; d < rank; ++d) out.dimensions[d] = {sharding.tile_dims[d], std::move(tiles[d])};
  if (unreduced < tiles.size()) out.unreduced = {sharding.tile_dims[unreduced], std::move(tiles[unreduced])};
  return out;
}

std::optional<std::vector<DimensionSharding>> from_mesh_axes(const NamedMesh& mesh,
                                                             const std::vector<std::vector<AxisPart>>& dimensions,
                                                             const std::vector<bool>& keep, size_t partitions) {
  const std::vector<int64_t> places = places_of_devices(mesh);
  std::vector<DimensionSharding> out(dimensions.size());
  for (size_t d = 0; d < dimensions.size(); ++d)
    for (const AxisPart& part : dimensions[d]) {
      if (!keep[part.axis] || part.size == 1) continue;
      if (places.size() != partitions) return std::nullopt;
      int64_t inner = 1;
      for (size_t axis = part.axis + 1; axis < mesh.axes.size(); ++axis) inner *= mesh.axes[axis].second;
      const int64_t size = mesh.axes[part.axis].second, behind = size / part.before / part.size;
      std::vector<int64_t> tiles;
      for (int64_t place : places) tiles.push_back(place / inner % size / behind % part.size);
      out[d] = compose(out[d], {part.size, std::move(tiles)});
    }
  return out;
}

Sharding to_hlo_sharding(const ArraySharding& sharding, size_t partitions) {
  Sharding out;
  if (sharding.is_replicated()) return out;
  if (sharding.is_whole() && sharding.unreduced.count() == static_cast<int64_t>(partitions)) {
    out.kind = Sharding::Kind::Unreduced;
    return out;
  }
  out.kind = Sharding::Kind::Tiled;
  std::vector<DimensionSharding> all = sharding.dimensions;
  const bool unreduced = sharding.unreduced.is_split();
  if (unreduced) all.push_back(sharding.unreduced);
  int64_t tiles = 1;
  for (const DimensionSharding& d : all) {
    out.tile_dims.push_back(d.count());
    tiles *= d.count();
  }
  std::vector<std::vector<int64_t>> holders(static_cast<size_t>(tiles));
  for (size_t p = 0; p < partitions; ++p) {
    int64_t place = 0;
    for (const DimensionSharding& d : all) place = place * d.count() + d.tile(p);
    holders[static_cast<size_t>(place)].push_back(static_cast<int64_t>(p));
  }
  const int64_t copies = static_cast<int64_t>(partitions) / tiles;
  if (unreduced) out.last_tile_dims.push_back(Sharding::Kind::Unreduced);
  if (copies > 1) {
    out.tile_dims.push_back(copies);
    if (unreduced)
      out.last_tile_dims.push_back(Sharding::Kind::Replicated);
    else
      out.last_tile_dim_replicate = true;
  }
  for (const auto& list : holders) out.devices.insert(out.devices.end(), list.begin(), list.end());
  return out;
}

std::string to_string(const ArraySharding& sharding, size_t partitions) {
  return to_hlo_sharding(sharding, partitions).to_string();
}

}  // namespace collet::hlo::spmd
