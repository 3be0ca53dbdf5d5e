// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// Interprets replica groups: what kind of number their ids are, and how many participants a group has.

namespace collet::hlo {

/// Kinds of ids that the replica groups of a collective hold.
enum class GroupMode : uint8_t {
  CrossReplica,              ///< replica ids; the group is formed separately within each partition
  CrossPartition,            ///< partition ids; the group is formed separately within each replica
  CrossReplicaAndPartition,  ///< replica ids; the group has all partitions of these replicas
  Flattened,                 ///< replica * num_partitions + partition
};

/// Returns the mode. `global_ids` is nullopt for ops without use_global_device_ids; using global ids without a channel
/// is an error.
Expected<GroupMode> group_mode(Op op, bool has_channel, std::optional<bool> global_ids);
/// Returns the number of ids that all groups together should hold.
int64_t participants(const Module& module, GroupMode mode);
/// Returns the number of participants of a group, or of all participants if no groups are listed. At least 1.
int64_t subgroup_size(const Module& module, GroupMode mode, const Groups& groups);

}  // namespace collet::hlo
