// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/spmd/reshard.h"

#include <numeric>
#include <utility>

#include "hlo/ir/types.h"

namespace collet::hlo::spmd {
namespace {

using Kind = ReshardStep::Kind;

// The largest common prefix of two lists of mesh axes, as a number of tiles.
int64_t common_prefix(const DimensionSharding& a, const DimensionSharding& b) {
  const int64_t most = std::gcd(a.count(), b.count());
  for (int64_t count = most; count > 1; --count)
    if (most % count == 0 && major_part(a, a.count() / count) == major_part(b, b.count() / count)) return count;
  return 1;
}

class Planner {
 public:
  Planner(const Shape& shape, const ArraySharding& from, const ArraySharding& to, const DeviceGroups& groups)
      : shape_(shape), now_(from), to_(to), groups_(groups) {}

  ReshardPlan run() {
    if (now_ == to_) return std::move(plan_);
    const DimensionSharding terms = reduce_sums();
    const DimensionSharding stays = now_.unreduced;
    const size_t most = 6 * now_.dimensions.size() + 8;
    for (size_t round = 0; round < most && now_.dimensions != to_.dimensions; ++round)
      if (!exchange() && !slice() && !permute() && !gather_one()) break;
    for (size_t d = 0; d < now_.dimensions.size(); ++d)  // gathers the dimensions that the loop above did not finish
      if (now_.dimensions[d] != to_.dimensions[d]) gather(d, 1);
    while (slice()) {
    }
    for (ReshardStep& step : plan_.steps) plan_.bytes += step.bytes;
    if (terms.is_split()) add(Kind::MaskTerms, 0, 0, terms, {now_.dimensions, compose(stays, terms)}, 0);
    return std::move(plan_);
  }

 private:
  int64_t size(size_t d) const { return shape_.dim(static_cast<int>(d)); }
  double bytes() const { return tile_bytes(shape_, now_); }

  void add(Kind kind, size_t dim, size_t from_dim, const DimensionSharding& along, ArraySharding after, double bytes) {
    plan_.steps.push_back({kind, dim, from_dim, along, now_, after, bytes});
    now_ = std::move(after);
  }
  // Whether each of the `count` tiles of dimension `d` can be split into `parts` tiles without moving elements between tiles.
  bool can_split(size_t d, int64_t count, int64_t parts) const {
    return count == 1 || are_nested(size(d), count, parts);
  }

  // Reduces along the mesh axes that `to` is not unreduced along. Returns those along which the value becomes unreduced at
  // the end.
  DimensionSharding reduce_sums() {
    const DimensionSharding had = now_.unreduced;
    DimensionSharding sum, stays, terms;
    if (same_split(had, to_.unreduced)) {
      stays = had;
    } else if (auto more = quotient(had, to_.unreduced)) {
      sum = std::move(*more);
      stays = to_.unreduced;
    } else if (auto less = quotient(to_.unreduced, had)) {
      terms = std::move(*less);
      stays = had;
    } else {
      sum = had;
      terms = to_.unreduced;
    }
    // Slicing first makes the sums smaller, so that less is sent.
    if (sum.is_split())
      while (slice()) {
      }
    while (sum.is_split() && reduce_scatter(sum, stays)) {
    }
    if (sum.is_split()) {
      const auto n = static_cast<double>(sum.count());
      add(Kind::AllReduce, 0, 0, sum, {now_.dimensions, stays}, 2 * (n - 1) / n * bytes());
    }
    now_.unreduced = stays;
    for (size_t d = 0; d < now_.dimensions.size() && terms.is_split(); ++d) {
      const DimensionSharding &has = now_.dimensions[d], &wants = to_.dimensions[d];
      if (!refines(has, wants) || size(d) % has.count()) continue;
      const DimensionSharding tiles = minor_part(has, has.count() / wants.count());
      if (!tiles.is_split() || !same_split(tiles, terms)) continue;
      ArraySharding after = now_;
      after.dimensions[d] = wants;
      after.unreduced = to_.unreduced;
      add(Kind::SpreadTerms, d, d, tiles, std::move(after), 0);
      terms = DimensionSharding();
    }
    return terms;
  }

  // Calls visit(d, along) for each list of mesh axes along which dimension d may be split further to come closer to the wanted sharding,
  // for each dimension the longest list first. Ends with true as soon as `visit` returns true.
  template <typename Visit>
  bool each_split(const Visit& visit) const {
    for (size_t d = 0; d < now_.dimensions.size(); ++d) {
      const DimensionSharding &has = now_.dimensions[d], &wants = to_.dimensions[d];
      if (has == wants || !refines(wants, has)) continue;
      const DimensionSharding extra = minor_part(wants, wants.count() / has.count());
      for (int64_t n = extra.count(); n > 1; --n) {
        if (extra.count() % n || !can_split(d, has.count(), n)) continue;
        if (visit(d, major_part(extra, extra.count() / n))) return true;
      }
    }
    return false;
  }

  // Adds a reduce-scatter along those mesh axes of `sum` that split a dimension in the wanted sharding.
  bool reduce_scatter(DimensionSharding& sum, const DimensionSharding& stays) {
    return each_split([&](size_t d, const DimensionSharding& along) {
      auto rest = quotient(sum, along);
      if (!rest) return false;
      const double sent = static_cast<double>(along.count() - 1) * tile_bytes(shape_, split(d, along));
      sum = std::move(*rest);
      add(Kind::ReduceScatter, d, d, along, {split(d, along).dimensions, compose(stays, sum)}, sent);
      return true;
    });
  }

  ArraySharding split(size_t d, const DimensionSharding& along) const {
    ArraySharding out = now_;
    out.dimensions[d] = compose(out.dimensions[d], along);
    return out;
  }

  // Adds an all-to-all for mesh axes that move from one dimension to another.
  bool exchange() {
    for (size_t i = 0; i < now_.dimensions.size(); ++i) {
      const DimensionSharding& has = now_.dimensions[i];
      if (!has.is_split() || refines(to_.dimensions[i], has)) continue;
      const DimensionSharding moved = minor_part(has, has.count() / common_prefix(has, to_.dimensions[i]));
      for (int64_t n = moved.count(); n > 1; --n) {
        if (moved.count() % n || !can_split(i, has.count() / n, n)) continue;
        const DimensionSharding along = minor_part(moved, n);
        for (size_t j = 0; j < now_.dimensions.size(); ++j) {
          const DimensionSharding &at = now_.dimensions[j], &wants = to_.dimensions[j];
          if (i == j || at == wants || !refines(wants, at) || wants.count() / at.count() < n) continue;
          const DimensionSharding extra = minor_part(wants, wants.count() / at.count());
          if (extra.count() % n || major_part(extra, extra.count() / n) != along || !can_split(j, at.count(), n))
            continue;
          ArraySharding after = split(j, along);
          after.dimensions[i] = major_part(has, n);
          const double sent = static_cast<double>(n - 1) / static_cast<double>(n) * bytes();
          add(Kind::AllToAll, j, i, along, std::move(after), sent);
          return true;
        }
      }
    }
    return false;
  }

  bool slice() {
    const bool sliced = each_split([&](size_t d, const DimensionSharding& along) {
      ArraySharding after = split(d, along);
      if (!is_consistent(after, groups_)) return false;
      add(Kind::Slice, d, d, along, std::move(after), 0);
      return true;
    });
    if (sliced) return true;
    // If further mesh axes must be major to those that split a dimension already, they are split as minor axes here, and a later
    // permute brings them into order.
    for (size_t d = 0; d < now_.dimensions.size(); ++d) {
      const DimensionSharding &has = now_.dimensions[d], &wants = to_.dimensions[d];
      if (!has.is_split() || refines(wants, has) || refines(has, wants)) continue;
      const auto rest = quotient(wants, has);
      if (!rest || !rest->is_split() || !can_split(d, has.count(), rest->count())) continue;
      ArraySharding after = split(d, *rest);
      if (!is_consistent(after, groups_)) continue;
      add(Kind::Slice, d, d, *rest, std::move(after), 0);
      return true;
    }
    return false;
  }

  // Adds a permute of tiles. If every dimension has the wanted number of tiles already, it brings all tiles to their wanted places.
  // Else it changes the order of mesh axes in a dimension, so that the wanted axes are major and the others can be gathered.
  bool permute() {
    ArraySharding after = now_;
    bool counts = true;
    for (size_t d = 0; d < now_.dimensions.size(); ++d)
      counts = counts && now_.dimensions[d].count() == to_.dimensions[d].count();
    if (counts) {
      after.dimensions = to_.dimensions;
    } else {
      bool any = false;
      for (size_t d = 0; d < now_.dimensions.size(); ++d) {
        const DimensionSharding &has = now_.dimensions[d], &wants = to_.dimensions[d];
        if (!has.is_split() || !wants.is_split() || refines(has, wants) || refines(wants, has)) continue;
        if (const auto rest = quotient(has, wants)) {
          after.dimensions[d] = compose(wants, *rest);
          any = true;
        }
      }
      if (!any || !is_consistent(after, groups_)) return false;
    }
    if (after == now_) return false;
    add(Kind::Permute, 0, 0, {}, std::move(after), bytes());
    return true;
  }

  // Gathers one dimension down to the mesh axes that its sharding has in common with the wanted one. Takes the dimension whose
  // gather is the smallest.
  bool gather_one() {
    size_t best = SIZE_MAX;
    double least = 0;
    for (const bool reordered : {false, true})  // dimensions that only need a permute are gathered last
      for (size_t d = 0; d < now_.dimensions.size() && (best == SIZE_MAX || !reordered); ++d) {
        const DimensionSharding& has = now_.dimensions[d];
        if (!has.is_split() || refines(to_.dimensions[d], has)) continue;
        if (same_split(has, to_.dimensions[d]) != reordered) continue;
        const auto n = static_cast<double>(has.count() / common_prefix(has, to_.dimensions[d]));
        if (best == SIZE_MAX || n < least) best = d, least = n;
      }
    if (best == SIZE_MAX) {  // a dimension must be split further, but its tiles do not nest: gather it completely
      for (size_t d = 0; d < now_.dimensions.size() && best == SIZE_MAX; ++d)
        if (now_.dimensions[d] != to_.dimensions[d] && now_.dimensions[d].is_split()) best = d;
      if (best == SIZE_MAX) return false;
      gather(best, 1);
      return true;
    }
    gather(best, common_prefix(now_.dimensions[best], to_.dimensions[best]));
    return true;
  }

  void gather(size_t d, int64_t keep) {
    const DimensionSharding has = now_.dimensions[d];
    if (!has.is_split()) return;
    if (!can_split(d, keep, has.count() / keep)) keep = 1;
    const int64_t n = has.count() / keep;
    ArraySharding after = now_;
    after.dimensions[d] = major_part(has, n);
    add(Kind::AllGather, d, d, minor_part(has, n), std::move(after), static_cast<double>(n - 1) * bytes());
  }

  const Shape& shape_;
  ArraySharding now_;
  const ArraySharding& to_;
  const DeviceGroups& groups_;
  ReshardPlan plan_;
};

}  // namespace

std::string ReshardPlan::to_string() const {
  static constexpr std::string_view kNames[] = {"all-reduce", "reduce-scatter", "slice",      "all-gather",
                                                "all-to-all", "permute",        "mask-terms", "spread-terms"};
  std::string out;
  for (const ReshardStep& step : steps) {
    if (!out.empty()) out += ", ";
    out += kNames[static_cast<size_t>(step.kind)];
    if (step.kind == Kind::AllToAll)
      out += " " + std::to_string(step.from_dim) + "->" + std::to_string(step.dim);
    else if (step.kind != Kind::AllReduce && step.kind != Kind::Permute && step.kind != Kind::MaskTerms)
      out += " " + std::to_string(step.dim);
  }
  return out;
}

ReshardPlan plan_reshard(const Shape& shape, const ArraySharding& from, const ArraySharding& to,
                         const DeviceGroups& groups) {
  return Planner(shape, from, to, groups).run();
}

double reshard_bytes(const Shape& shape, const ArraySharding& from, const ArraySharding& to,
                     const DeviceGroups& groups) {
  return from == to ? 0 : plan_reshard(shape, from, to, groups).bytes;
}

Shape tile_shape(const Shape& shape, const ArraySharding& sharding) {
  if (!shape.is_array() || sharding.is_whole()) return shape.without_layout();
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  for (size_t d = 0; d < dims.size(); ++d) dims[d] = tile_size(dims[d], sharding.dimensions[d].count());
  return Shape::array(shape.type(), dims);
}

double tile_bytes(const Shape& shape, const ArraySharding& sharding) {
  if (!shape.is_array()) return 0;
  double elements = 1;
  for (size_t d = 0; d < sharding.dimensions.size(); ++d)
    elements *= static_cast<double>(tile_size(shape.dim(static_cast<int>(d)), sharding.dimensions[d].count()));
  return elements * static_cast<double>(type_info(shape.type()).bits) / 8;
}

}  // namespace collet::hlo::spmd
