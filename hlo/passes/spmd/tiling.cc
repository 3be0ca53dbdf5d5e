// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/spmd/tiling.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace collet::hlo::spmd {
namespace {

// Devices of a tile assignment, row-major.
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

bool is_whole(const Tiling& tiling) {
  return std::all_of(tiling.begin(), tiling.end(), [](const Column& c) { return c.whole(); });
}

bool World::together() const {
  return std::all_of(domain.begin(), domain.end(), [&](int64_t d) { return d == domain[0]; });
}

bool World::alone() const {
  return std::set<int64_t>(domain.begin(), domain.end()).size() == domain.size();
}

World within(const World& world, const Column& column) {
  World out = world;
  for (size_t p = 0; p < out.domain.size(); ++p) out.domain[p] = out.domain[p] * column.count + column.of(p);
  return out;
}

bool fits(const Tiling& tiling, const World& world) {
  int64_t combinations = 1;
  for (const Column& c : tiling) {
    if (c.count > static_cast<int64_t>(world.partitions()) / combinations) return false;
    combinations *= c.count;
  }
  if (combinations == 1) return true;
  std::map<int64_t, std::map<int64_t, int64_t>> often;  // by domain and place
  for (size_t p = 0; p < world.partitions(); ++p) {
    int64_t place = 0;
    for (const Column& c : tiling) place = place * c.count + c.of(p);
    ++often[world.domain[p]][place];
  }
  for (const auto& [domain, places] : often) {
    if (static_cast<int64_t>(places.size()) != combinations) return false;
    for (const auto& [place, n] : places)
      if (n != places.begin()->second) return false;
  }
  return true;
}

Column high_part(const Column& column, int64_t low) {
  Column out{column.count / low, {}};
  if (!out.whole())
    for (int64_t t : column.at) out.at.push_back(t / low);
  return out;
}

Column low_part(const Column& column, int64_t low) {
  Column out{low, {}};
  if (!out.whole())
    for (int64_t t : column.at) out.at.push_back(t % low);
  return out;
}

Column joined(const Column& high, const Column& low) {
  if (high.whole()) return low;
  if (low.whole()) return high;
  Column out{high.count * low.count, {}};
  for (size_t p = 0; p < high.at.size(); ++p) out.at.push_back(high.at[p] * low.count + low.at[p]);
  return out;
}

bool refines(const Column& fine, const Column& coarse) {
  return fine.count % coarse.count == 0 && high_part(fine, fine.count / coarse.count) == coarse;
}

std::optional<Column> remainder(const Column& fine, const Column& coarse) {
  if (coarse.whole()) return fine;
  if (fine.count % coarse.count || fine.whole()) return std::nullopt;
  Column out{fine.count / coarse.count, {}};
  std::map<int64_t, std::set<int64_t>> parts;  // of each part of `coarse`
  for (size_t p = 0; p < fine.at.size(); ++p) parts[coarse.at[p]].insert(fine.at[p]);
  std::map<int64_t, int64_t> place;
  for (const auto& [part, list] : parts) {
    if (static_cast<int64_t>(list.size()) != out.count) return std::nullopt;
    int64_t next = 0;
    for (int64_t number : list)
      if (!place.emplace(number, next++).second) return std::nullopt;  // in two parts
  }
  if (!out.whole())
    for (int64_t number : fine.at) out.at.push_back(place[number]);
  return out;
}

bool same_parts(const Column& a, const Column& b) {
  return a == b || (a.count == b.count && remainder(a, b));
}

std::vector<std::vector<int64_t>> groups_across(const Tiling& tiling, std::span<const size_t> across,
                                                const World& world) {
  std::map<std::vector<int64_t>, int64_t> copies;
  std::map<std::vector<int64_t>, std::vector<std::pair<int64_t, int64_t>>> groups;
  for (size_t p = 0; p < world.partitions(); ++p) {
    std::vector<int64_t> all{world.domain[p]}, rest{world.domain[p]};
    int64_t place = 0;
    for (size_t d = 0; d < tiling.size(); ++d) {
      all.push_back(tiling[d].of(p));
      if (std::find(across.begin(), across.end(), d) == across.end()) rest.push_back(tiling[d].of(p));
    }
    for (size_t d : across) place = place * tiling[d].count + tiling[d].of(p);
    rest.push_back(copies[all]++);  // the first of those who have the same goes with the first of others
    groups[rest].emplace_back(place, static_cast<int64_t>(p));
  }
  std::vector<std::vector<int64_t>> out;
  for (auto& [key, members] : groups) {
    std::sort(members.begin(), members.end());
    std::vector<int64_t>& group = out.emplace_back();
    for (const auto& [place, p] : members) group.push_back(p);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::optional<Tiling> from_sharding(const Sharding& sharding, size_t rank, size_t partitions, Column* open) {
  if (sharding.kind == Sharding::Kind::Replicated) return whole(rank);
  if (sharding.kind == Sharding::Kind::Unreduced && open) {
    *open = {static_cast<int64_t>(partitions), std::vector<int64_t>(partitions)};
    std::iota(open->at.begin(), open->at.end(), int64_t{0});
    return whole(rank);
  }
  if (sharding.kind != Sharding::Kind::Tiled) return std::nullopt;
  const size_t extra = sharding.last_tile_dim_replicate ? 1 : sharding.last_tile_dims.size();
  size_t sums = SIZE_MAX;  // the tile dimension along which they are left open
  for (size_t i = 0; i < sharding.last_tile_dims.size(); ++i) {
    if (sharding.last_tile_dims[i] == Sharding::Kind::Replicated) continue;
    if (sharding.last_tile_dims[i] != Sharding::Kind::Unreduced || !open || sums != SIZE_MAX) return std::nullopt;
    sums = rank + i;
  }
  if (sharding.tile_dims.size() != rank + extra) return std::nullopt;
  const std::vector<int64_t> devices = assignment(sharding);
  int64_t total = 1;
  for (int64_t n : sharding.tile_dims) total *= n;
  if (total != static_cast<int64_t>(devices.size()) || devices.size() != partitions) return std::nullopt;
  Tiling out(rank);
  if (sums != SIZE_MAX && sums < sharding.tile_dims.size())
    *open = {sharding.tile_dims[sums], std::vector<int64_t>(partitions)};
  for (size_t d = 0; d < rank; ++d) {
    out[d].count = sharding.tile_dims[d];
    if (!out[d].whole()) out[d].at.assign(partitions, -1);
  }
  for (size_t place = 0; place < devices.size(); ++place) {
    const int64_t p = devices[place];
    if (p < 0 || p >= static_cast<int64_t>(partitions)) return std::nullopt;
    auto rest = static_cast<int64_t>(place);
    for (size_t d = sharding.tile_dims.size(); d-- > 0;) {
      if (d < rank && !out[d].whole()) out[d].at[static_cast<size_t>(p)] = rest % sharding.tile_dims[d];
      if (d == sums && !open->whole()) open->at[static_cast<size_t>(p)] = rest % sharding.tile_dims[d];
      rest /= sharding.tile_dims[d];
    }
  }
  for (const Column& c : out)
    if (std::find(c.at.begin(), c.at.end(), -1) != c.at.end()) return std::nullopt;
  return out;
}

std::optional<Tiling> from_axes(const NamedMesh& mesh, const std::vector<std::vector<AxisPart>>& dimensions,
                                const std::vector<bool>& keep, size_t partitions) {
  const std::vector<int64_t> places = places_of_devices(mesh);
  Tiling out(dimensions.size());
  for (size_t d = 0; d < dimensions.size(); ++d)
    for (const AxisPart& part : dimensions[d]) {
      if (!keep[part.axis] || part.size == 1) continue;
      if (places.size() != partitions) return std::nullopt;
      int64_t inner = 1;
      for (size_t axis = part.axis + 1; axis < mesh.axes.size(); ++axis) inner *= mesh.axes[axis].second;
      const int64_t size = mesh.axes[part.axis].second, behind = size / part.before / part.size;
      Column c{part.size, {}};
      for (int64_t place : places) c.at.push_back(place / inner % size / behind % part.size);
      out[d] = joined(out[d], c);
    }
  return out;
}

Sharding to_sharding(const Tiling& tiling, size_t partitions, const Column& open) {
  Sharding out;
  if (is_whole(tiling) && open.whole()) return out;
  if (is_whole(tiling) && open.count == static_cast<int64_t>(partitions)) {
    out.kind = Sharding::Kind::Unreduced;
    return out;
  }
  out.kind = Sharding::Kind::Tiled;
  Tiling all = tiling;
  if (!open.whole()) all.push_back(open);
  int64_t tiles = 1;
  for (const Column& c : all) {
    out.tile_dims.push_back(c.count);
    tiles *= c.count;
  }
  std::vector<std::vector<int64_t>> holders(static_cast<size_t>(tiles));
  for (size_t p = 0; p < partitions; ++p) {
    int64_t place = 0;
    for (const Column& c : all) place = place * c.count + c.of(p);
    holders[static_cast<size_t>(place)].push_back(static_cast<int64_t>(p));
  }
  const int64_t copies = static_cast<int64_t>(partitions) / tiles;
  if (!open.whole()) out.last_tile_dims.push_back(Sharding::Kind::Unreduced);
  if (copies > 1) {
    out.tile_dims.push_back(copies);
    if (open.whole())
      out.last_tile_dim_replicate = true;
    else
      out.last_tile_dims.push_back(Sharding::Kind::Replicated);
  }
  for (const auto& list : holders) out.devices.insert(out.devices.end(), list.begin(), list.end());
  return out;
}

}  // namespace collet::hlo::spmd
