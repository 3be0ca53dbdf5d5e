// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "hlo/ir/module.h"

/// \file
/// Counts the bytes that the collectives of a partitioned module move.

namespace collet::hlo::spmd {

/// Bytes that one participant sends, by kind of collective, assuming ring algorithms: in groups of n, an all-reduce
/// sends 2(n-1)/n of its operand, an all-gather (n-1)/n of its result, a reduce-scatter and an all-to-all (n-1)/n of
/// their operand, a collective-broadcast (n-1)/n of its operand, and a collective-permute all of its operand.
struct CollectiveTraffic {
  double all_reduce = 0;
  double all_gather = 0;
  double reduce_scatter = 0;
  double all_to_all = 0;
  double permute = 0;
  double broadcast = 0;
  int64_t collectives = 0;  ///< number of instructions, each counted once

  /// Returns the sum over all kinds.
  double total() const { return all_reduce + all_gather + reduce_scatter + all_to_all + permute + broadcast; }
  /// Adds `times` times the bytes of `other`, and its instructions once.
  void add(const CollectiveTraffic& other, double times);
};

/// Returns the traffic of one execution of the entry computation. The body of a loop counts once per iteration, if its
/// trip count is known (from `WhileAttrs`, from the instructions of the loop, or from the known_trip_count that XLA
/// writes), otherwise once. Of the branches of a conditional, only the one with the most traffic counts.
CollectiveTraffic collective_traffic(const Module& module);

/// Returns the trip count of the loop `id`; 1 if it is not known.
int64_t trip_count_or_one(const Module& module, InstrId id);

}  // namespace collet::hlo::spmd
