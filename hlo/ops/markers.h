// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace collet::hlo {

/// True if this is the target of a custom call that only annotates its operands, for example with their sharding or
/// memory space. The call returns its operand, or several operands as a tuple.
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
