// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "hlo/ir/module.h"

/// \file
/// The bytes that the collectives of a per-partition module move.

namespace collet::hlo::spmd {

/// Bytes that one participant sends, by kind of collective. Each is weighted as a ring algorithm sends it: with groups
/// of n, an all-reduce 2(n-1)/n of its operand, an all-gather (n-1)/n of its result, a reduce-scatter and an all-to-all
/// (n-1)/n of their operand, a collective-broadcast (n-1)/n of its operand, a collective-permute all of its operand.
struct CollectiveTraffic {
  double all_reduce = 0;
  double all_gather = 0;
  double reduce_scatter = 0;
  double all_to_all = 0;
  double permute = 0;
  double broadcast = 0;
  int64_t collectives = 0;  ///< instructions, each counted once

  /// Sum over the kinds.
  double total() const { return all_reduce + all_gather + reduce_scatter + all_to_all + permute + broadcast; }
  /// Adds `times` times the bytes of `other`, and its instructions once.
  void add(const CollectiveTraffic& other, double times);
};

/// The traffic of one execution of the entry computation. The body of a loop counts as often as it runs, where that is
/// known (`WhileAttrs`, the text of the loop, or the known_trip_count that XLA writes), and once where it is not; of the
/// branches of a conditional the one with the most traffic counts.
CollectiveTraffic collective_traffic(const Module& module);

/// The number of trips of the loop `id`: 1 where it is not known.
int64_t trip_count_or_one(const Module& module, InstrId id);

}  // namespace collet::hlo::spmd
