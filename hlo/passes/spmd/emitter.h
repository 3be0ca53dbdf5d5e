// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "hlo/passes/builder.h"
#include "hlo/passes/spmd/tiling.h"

namespace collet::hlo::spmd {

/// Writes what one partition does into a computation: tiles, and the collectives between them.
class Emitter {
 public:
  /// `channels`: of collectives, counted over the module.
  Emitter(Module& module, CompId computation, int64_t replicas, int64_t& channels)
      : module_(module), b_(module, computation), replicas_(replicas), channels_(channels) {}

  Builder& builder() { return b_; }
  Module& module() { return module_; }

  /// `x`, a tile by `from`, as a tile by `to` of the same array.
  InstrId reshard(InstrId x, Tiling from, const Tiling& to, const World& world);
  /// Combines the results of those who differ in the dimensions `across` of `tiling`.
  InstrId all_reduce(InstrId x, CompId combine, const Tiling& tiling, std::span<const size_t> across,
                     const World& world);
  /// `x` for those who come first by `column`, zeros for the others: the sum over it is `x`.
  InstrId only_first(InstrId x, const Column& column);
  /// Zeros, and `x` at its place in dimension `dim`: the sum of all over `column` is those tiles joined.
  InstrId spread(InstrId x, size_t dim, const Column& column);
  /// What partition `source` has: each array of a tuple.
  InstrId from_one(InstrId x, int64_t source, const World& world);
  /// This partition's number, u32; made where it is first wanted.
  InstrId partition_id();
  void set_partition_id(InstrId id) { partition_id_ = id; }
  bool used_partition_id() const { return used_; }

 private:
  InstrId slice_dim(InstrId x, size_t dim, const Column& from, const Column& to);
  InstrId gather_dim(InstrId x, const Tiling& tiling, size_t dim, const World& world);
  InstrId exchange(InstrId x, const Tiling& tiling, size_t split, size_t join, const World& world);
  /// Groups of partitions, as ids of replica * partitions + partition, or of partitions alone.
  Groups groups(const std::vector<std::vector<int64_t>>& groups, bool global, const World& world);
  InstrId from_table(const std::vector<int64_t>& by_partition);

  Module& module_;
  Builder b_;
  int64_t replicas_;
  int64_t& channels_;
  InstrId partition_id_ = InstrId::None;
  bool used_ = false;
  std::map<std::vector<int64_t>, InstrId> tables_;
};

}  // namespace collet::hlo::spmd
