// SPDX-License-Identifier: Apache-2.0
#include "hlo/testing/partitioned_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "hlo/testing/equivalence.h"

namespace collet::hlo::testing {

using namespace spmd;

namespace {

void add_to(Literal& sum, const Literal& x) {
  for (int64_t i = 0; i < sum.element_count(); ++i)
    if (is_integer(sum.type()))
      sum.set_int(i, static_cast<int64_t>(static_cast<uint64_t>(sum.as_int(i)) + static_cast<uint64_t>(x.as_int(i))));
    else
      sum.set_double(i, sum.as_double(i) + x.as_double(i), sum.imaginary(i) + x.imaginary(i));
}

// Returns the tile of partition `p` without the padding that tiles at the end of an uneven dimension have.
Literal unpadded(const Literal& tile, const Shape& whole, const ArraySharding& sharding, size_t p) {
  std::vector<int64_t> dims(tile.shape().dims().begin(), tile.shape().dims().end());
  bool same = true;
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t left = whole.dim(static_cast<int>(d)) - sharding.dimensions[d].tile(p) * dims[d];
    same = same && left >= dims[d];
    dims[d] = std::clamp<int64_t>(left, 0, dims[d]);
  }
  if (same) return tile;
  Literal out = Literal::zeros(Shape::array(tile.type(), dims));
  std::vector<int64_t> index(dims.size());
  for (int64_t i = 0; i < out.element_count(); ++i) {
    int64_t from = 0;
    for (size_t d = 0; d < dims.size(); ++d) from = from * tile.shape().dims()[d] + index[d];
    if (is_integer(out.type()) || out.type() == Type::PRED)
      out.set_int(i, tile.as_int(from));
    else
      out.set_double(i, tile.as_double(from), tile.imaginary(from));
    for (size_t d = dims.size(); d-- > 0;) {
      if (++index[d] < dims[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

ArraySharding sharding_of(const Sharding* sharding, size_t leaf, const Shape& shape, size_t partitions) {
  const auto rank = static_cast<size_t>(shape.is_array() ? shape.rank() : 0);
  if (sharding && sharding->kind == Sharding::Kind::Tuple) sharding = &sharding->elements[leaf];
  if (!sharding) return ArraySharding(rank);
  return from_hlo_sharding(*sharding, rank, partitions).value_or(ArraySharding(rank));
}

}  // namespace

Literal tile_of(const Literal& value, const ArraySharding& sharding, size_t p) {
  if (!value.shape().is_array() || sharding.is_whole()) return value;
  std::vector<int64_t> dims(value.shape().dims().begin(), value.shape().dims().end()), first(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    dims[d] = tile_size(dims[d], sharding.dimensions[d].count());
    first[d] = sharding.dimensions[d].tile(p) * dims[d];
  }
  Literal out = Literal::zeros(Shape::array(value.type(), dims));
  const auto bytes = static_cast<size_t>(value.element_count() ? value.byte_size() / value.element_count() : 0);
  uint8_t* to = out.mutable_bytes();
  std::vector<int64_t> index(dims.size());
  for (int64_t i = 0; i < out.element_count(); ++i) {
    int64_t from = 0;
    bool inside = true;
    for (size_t d = 0; d < dims.size(); ++d) {
      inside = inside && first[d] + index[d] < value.shape().dims()[d];
      from = from * value.shape().dims()[d] + first[d] + index[d];
    }
    if (inside)
      std::memcpy(to + static_cast<size_t>(i) * bytes, value.bytes() + static_cast<size_t>(from) * bytes, bytes);
    for (size_t d = dims.size(); d-- > 0;) {
      if (++index[d] < dims[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

Literal term_of(const Literal& value, const DimensionSharding& unreduced, size_t p) {
  if (!unreduced.is_split()) return value;
  Literal out = value;
  const int64_t n = unreduced.count(), k = unreduced.tile(p);
  for (int64_t i = 0; i < out.element_count(); ++i) {
    if (is_integer(value.type()))  // the terms differ from each other; their sum is exact, since integers wrap around
      out.set_int(i, k ? k * (i + 3)
                       : static_cast<int64_t>(static_cast<uint64_t>(value.as_int(i)) -
                                              static_cast<uint64_t>(n * (n - 1) / 2 * (i + 3))));
    else  // equal terms; the division is exact, since n is a power of two
      out.set_double(i, value.as_double(i) / static_cast<double>(n), value.imaginary(i) / static_cast<double>(n));
  }
  return out;
}

/// Returns the largest finite magnitude of a float array; 0 for other types.
double magnitude(const Literal& value) {
  double largest = 0;
  if (is_integer(value.type()) || value.type() == Type::PRED) return largest;
  for (int64_t i = 0; i < value.element_count(); ++i) {
    const double x = std::hypot(value.as_double(i), value.imaginary(i));
    if (std::isfinite(x)) largest = std::max(largest, x);
  }
  return largest;
}

std::string compare_partitions(const Module& partitioned, const std::vector<Literal>& inputs, const Literal& expected) {
  EvalOptions options;
  options.replicas = std::max<int64_t>(partitioned.header().replica_count, 1);
  options.partitions = std::max<int64_t>(partitioned.header().num_partitions, 1);
  options.limits.seconds = 60;
  const auto partitions = static_cast<size_t>(options.partitions);
  std::vector<std::vector<Literal>> arguments(static_cast<size_t>(options.replicas) * partitions);
  const Computation& entry = partitioned.entry_computation();
  for (size_t p = 0; p < arguments.size(); ++p)
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Instruction& parameter = partitioned[entry.parameters[i]];
      const Sharding* given = parameter.extras ? parameter.extras->sharding : nullptr;
      const ArraySharding sharding = sharding_of(given, 0, inputs[i].shape(), partitions);
      arguments[p].push_back(term_of(tile_of(inputs[i], sharding, p % partitions), sharding.unreduced, p % partitions));
    }
  const auto got = Evaluator(partitioned, options).run_all(arguments);
  if (!got.ok()) return "the evaluator: " + got.status().to_string();
  const std::vector<Literal> whole = flatten(expected);
  const Instruction& root = partitioned[entry.root];
  const Sharding* given = root.extras ? root.extras->sharding : nullptr;
  std::vector<std::vector<Literal>> results;
  for (const Literal& all : *got) results.push_back(flatten(all));
  for (size_t p = 0; p < arguments.size(); ++p) {
    const size_t first = p / partitions * partitions;  // first participant of its replica
    for (size_t i = 0; i < whole.size(); ++i) {
      if (!whole[i].shape().is_array()) continue;
      const ArraySharding sharding = sharding_of(given, i, whole[i].shape(), partitions);
      Literal mine = results[p][i];
      Tolerance tolerance{1e-9, 1e-4};
      if (sharding.unreduced.is_split()) {
        DimensionSharding place;
        for (const DimensionSharding& d : sharding.dimensions) place = compose(place, d);
        const auto groups = groups_across(std::array{sharding.unreduced}, std::array{size_t{0}},
                                          within(DeviceGroups::one(partitions), place));
        double terms = magnitude(mine);
        for (const std::vector<int64_t>& group : groups)
          if (std::find(group.begin(), group.end(), static_cast<int64_t>(p % partitions)) != group.end())
            for (const int64_t other : group)
              if (other != static_cast<int64_t>(p % partitions)) {
                const Literal& term = results[first + static_cast<size_t>(other)][i];
                terms += magnitude(term);
                add_to(mine, term);
              }
        if (const double sum = magnitude(mine); sum > 0) tolerance.narrow = std::max(1.0, terms / sum);
      }
      const size_t q = p % partitions;
      const std::string differs = difference(unpadded(tile_of(whole[i], sharding, q), whole[i].shape(), sharding, q),
                                             unpadded(mine, whole[i].shape(), sharding, q), tolerance);
      if (!differs.empty())
        return "result " + std::to_string(i) + " of participant " + std::to_string(p) + ": " + differs;
    }
  }
  return {};
}

}  // namespace collet::hlo::testing
