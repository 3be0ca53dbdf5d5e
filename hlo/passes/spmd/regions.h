// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/base/utf8.h"
#include "hlo/ir/module.h"
#include "hlo/passes/spmd/array_sharding.h"

/// \file
/// The computations of a module as the partitioner treats them: which partitions compute together in each, which values
/// are manual, and which shardings the program states.

namespace collet::hlo::spmd {

/// A computation that the entry reaches by control flow. Each is called by one instruction only.
struct Region {
  CompId computation = CompId::None;
  DeviceGroups groups;
  double weight = 1;  ///< estimate of how often it runs
};

/// The sharding that a program states for a value.
struct StatedSharding {
  ArraySharding sharding;
  std::vector<bool> open;  ///< by dimension: propagation may split it further
};

/// The sharding of a dimension in two parts: along manual mesh axes, and along the others.
struct ManualSplit {
  std::vector<DimensionSharding> manual, free;
  DimensionSharding unreduced;
  std::vector<bool> open;  ///< by dimension: propagation may split it further along the free axes
  /// Returns the sharding of the array outside of the manual computation, if `inner` is that of a tile inside.
  std::vector<DimensionSharding> outer(const std::vector<DimensionSharding>& inner) const;
};

/// The structure of a module to be partitioned.
class ProgramRegions {
 public:
  /// Copies computations so that every call, loop and branch has its own, and finds the device groups of each.
  static Expected<ProgramRegions> build(Module& module, size_t partitions);

  size_t partitions() const { return partitions_; }
  /// All regions, callers before callees.
  const std::vector<Region>& all() const { return regions_; }
  /// Returns the region of a computation; null for one that is copied unchanged.
  const Region* of(CompId computation) const;
  /// True if each partition has its own value, which is not an array of the original program.
  bool is_manual(InstrId id) const { return index_of(id) < manual_.size() && manual_[index_of(id)]; }
  /// True for a while, conditional or call whose computations are copied unchanged, not partitioned.
  bool is_copied(InstrId id) const { return index_of(id) < copied_.size() && copied_[index_of(id)]; }
  /// True if a computation, or one that it calls, has markers of manual computations.
  bool has_markers(CompId computation) const { return markers_[index_of(computation)]; }

  /// Returns the sharding that the program states for leaf `index` of `instr`; nothing if it states none, or one in a
  /// form that is not supported.
  std::optional<StatedSharding> stated(const Instruction& instr, const Shape& leaf, size_t index) const;
  /// Returns the stated sharding restricted to the partitions of each group in `groups`. Dimensions whose sharding is
  /// not consistent there, or that have fewer elements than tiles, are not split.
  std::optional<StatedSharding> constraint(const Instruction& instr, const Shape& leaf, size_t index,
                                           const DeviceGroups& groups) const;

  /// Returns the sharding that the marker of a manual computation states for its operand or result `i`, an array of
  /// rank `rank`.
  Expected<ManualSplit> manual_split(const Instruction& marker, size_t i, size_t rank) const;
  /// Returns the groups inside of the manual computation that `marker` enters or leaves.
  Expected<DeviceGroups> manual_groups(const Instruction& marker, const DeviceGroups& outside) const;
  /// Returns the device that must run `instr` alone, if its sharding states one.
  std::optional<int64_t> one_device(const Instruction& instr) const;

 private:
  friend class RegionBuilder;
  Expected<NamedMesh> mesh(const NamedSharding& sharding) const;

  size_t partitions_ = 1;
  std::string meshes_;  ///< the meshes of the module, as text
  std::vector<Region> regions_;
  std::unordered_map<uint32_t, size_t> region_of_;
  std::vector<bool> manual_, copied_, markers_;
};

/// Returns the value of a frontend attribute; empty if there is none.
std::string_view frontend_attribute(const Instruction& instr, std::string_view name);
/// True for custom calls that state a sharding constraint, whose targets only a partitioner knows.
bool is_constraint(const Instruction& instr);
/// True for the collectives that a manual computation may have.
bool is_collective(Op op);
inline constexpr std::string_view kEnterManual = "xla.sdy.GlobalToLocalShape";
inline constexpr std::string_view kLeaveManual = "xla.sdy.LocalToGlobalShape";
inline constexpr std::string_view kEnterManualTile = "SPMDFullToShardShape";
inline constexpr std::string_view kLeaveManualTile = "SPMDShardToFullShape";
/// True if leaf `leaf` of the entry's result may be split: the program states its sharding, or
/// allow_spmd_sharding_propagation_to_output does not forbid it.
bool may_split_result(const Module& module, size_t leaf);
/// True if `instr` is a custom call of that target.
bool is_custom_call(const Instruction& instr, std::string_view target);

}  // namespace collet::hlo::spmd
