// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"
#include "hlo/passes/spmd/array_sharding.h"

/// \file
/// The computations of a module as the partitioner sees them: which partitions work together in each, what is manual, and
/// what the program says of shardings.

namespace collet::hlo::spmd {

/// The instruction's name, in quotes, for messages.
inline std::string quoted(const Instruction& instr) {
  return "'" + std::string(instr.name) + "'";
}

/// A computation that the entry reaches by control flow. Each is called at one place.
struct Region {
  CompId computation = CompId::None;
  DeviceGroups groups;
  double weight = 1;  ///< how often it runs
};

/// The sharding that a program states for a value.
struct StatedSharding {
  ArraySharding sharding;
  std::vector<bool> open;  ///< by dimension: it may be split further
};

/// The sharding of a dimension in two parts: along manual mesh axes, and along the others.
struct ManualSplit {
  std::vector<DimensionSharding> manual, free;
  DimensionSharding unreduced;
  std::vector<bool> open;  ///< by dimension: the free part may be split further
  /// The sharding of the array outside of the manual computation, where `inner` is that of a tile inside.
  std::vector<DimensionSharding> outer(const std::vector<DimensionSharding>& inner) const;
};

/// The structure of a module to be partitioned.
class ProgramRegions {
 public:
  /// Gives every call, loop and branch computations of its own, and finds the groups of each.
  static Expected<ProgramRegions> build(Module& module, size_t partitions);

  size_t partitions() const { return partitions_; }
  /// Callers before callees.
  const std::vector<Region>& all() const { return regions_; }
  /// The region of a computation; null for one that is copied as it stands.
  const Region* of(CompId computation) const;
  /// A value that each partition has for itself: it is no array of the whole program.
  bool is_manual(InstrId id) const { return index_of(id) < manual_.size() && manual_[index_of(id)]; }
  /// A while, conditional or call whose computations are copied as they stand: nothing is partitioned in them.
  bool is_copied(InstrId id) const { return index_of(id) < copied_.size() && copied_[index_of(id)]; }
  /// Whether a computation, or one that it calls, has markers of manual computations.
  bool has_markers(CompId computation) const { return markers_[index_of(computation)]; }

  /// Returns the sharding that the program states for leaf `index` of `instr`; nothing if it states none that is
  /// understood.
  std::optional<StatedSharding> stated(const Instruction& instr, const Shape& leaf, size_t index) const;
  /// The same among the partitions of `groups`; what is not consistent there, or has fewer elements than tiles, is left
  /// out.
  std::optional<StatedSharding> constraint(const Instruction& instr, const Shape& leaf, size_t index,
                                           const DeviceGroups& groups) const;

  /// Returns the sharding of operand or result `i`, an array of rank `rank`, of the marker of a manual computation.
  Expected<ManualSplit> manual_split(const Instruction& marker, size_t i, size_t rank) const;
  /// The groups inside of the manual computation that `marker` enters or leaves.
  Expected<DeviceGroups> manual_groups(const Instruction& marker, const DeviceGroups& outside) const;
  /// The device that alone has to do `instr`, where its sharding says so.
  std::optional<int64_t> one_device(const Instruction& instr) const;

 private:
  friend class RegionBuilder;
  Expected<NamedMesh> mesh(const NamedSharding& sharding) const;

  size_t partitions_ = 1;
  std::string meshes_;  ///< the module's, as text
  std::vector<Region> regions_;
  std::unordered_map<uint32_t, size_t> region_of_;
  std::vector<bool> manual_, copied_, markers_;
};

/// The value of a frontend attribute; empty where there is none.
std::string_view frontend_attribute(const Instruction& instr, std::string_view name);
/// Targets of custom calls that only a partitioner understands.
bool is_constraint(const Instruction& instr);
inline constexpr std::string_view kEnterManual = "xla.sdy.GlobalToLocalShape";
inline constexpr std::string_view kLeaveManual = "xla.sdy.LocalToGlobalShape";
inline constexpr std::string_view kEnterManualTile = "SPMDFullToShardShape";
inline constexpr std::string_view kLeaveManualTile = "SPMDShardToFullShape";
/// Whether leaf `leaf` of the entry's result may be split: the program states its sharding, or
/// allow_spmd_sharding_propagation_to_output does not forbid it.
bool may_split_result(const Module& module, size_t leaf);
/// Whether `instr` is a custom call of that target.
bool is_custom_call(const Instruction& instr, std::string_view target);

}  // namespace collet::hlo::spmd
