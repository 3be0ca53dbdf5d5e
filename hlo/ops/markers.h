// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace collet::hlo {

/// Is this the target of a custom call that only says something about its operands: how they are sharded, in which memory
/// they lie? A participant alone gets them back, several as a tuple.
inline bool is_marker_target(std::string_view target) {
  constexpr std::string_view kTargets[] = {
      "Sharding",
      "SPMDFullToShardShape",
      "SPMDShardToFullShape",
      "ShardBarrierFrom",
      "ShardBarrierTo",
      "xla.sdy.FuncResultSharding",
      "xla.sdy.GlobalToLocalShape",
      "xla.sdy.LocalToGlobalShape",
      "annotate_device_placement",
      "MoveToHost",
      "MoveToDevice",
      "LayoutConstraint",
      "Pin",
      "Unpin",
  };
  return std::find(std::begin(kTargets), std::end(kTargets), target) != std::end(kTargets);
}

}  // namespace collet::hlo
