// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/estimate/machine.h"
#include "hlo/estimate/network.h"
#include "hlo/ir/module.h"

/// \file
/// The estimated time and memory of one execution of a program on a machine: of one device, since all do the same.

namespace collet::hlo::estimate {

/// What takes the time of an op.
enum class Bound : uint8_t { Compute, Memory, Launch, Network };
std::string_view bound_name(Bound bound);

/// An op, a group of ops, or a collective of the program that a device runs.
struct OpTime {
  std::string name;   ///< of the instruction
  std::string what;   ///< the op; of a fusion those in it that cost most
  std::string where;  ///< op_name of the metadata; empty if there is none
  double times = 1;   ///< executions
  double flops = 0;   ///< of one
  double bytes = 0;   ///< of one: read and written in memory, or what a collective moves
  double ns = 0;      ///< of one
  Bound bound = Bound::Compute;
  Span span;           ///< of a collective
  size_t level = 0;    ///< of a collective: the level of the network that takes most of it
  bool grows = false;  ///< of a collective: its groups have more members on more devices, see project

  double total_ns() const { return times * ns; }
};

/// Bytes of one device.
struct DeviceMemory {
  double arguments = 0, results = 0;  ///< results without those that take over an argument's memory
  double constants = 0;
  double temporaries = 0;  ///< of the plan of buffers for the program as it is
  double total() const { return arguments + results + constants + temporaries; }
};

struct Step {
  std::string name;
  int64_t devices = 1;
  double flops = 0, bytes = 0, network_bytes = 0;  ///< of one device, with the iterations of loops
  double launches = 0;
  /// The time by what takes it, in nanoseconds. An op counts with all of its time as that which bounds it.
  double compute_ns = 0, memory_ns = 0, launch_ns = 0, network_ns = 0;
  double peak_ns = 0;  ///< of its products alone, at their peak
  DeviceMemory memory;
  std::vector<OpTime> ops;  ///< all, in the order of the program; collectives among them
  /// Custom calls without a cost, and how often they run; loops whose trips are not known.
  std::vector<std::string> notes;

  /// If nothing overlaps.
  double device_ns() const { return compute_ns + memory_ns + launch_ns; }
  double total_ns() const { return device_ns() + network_ns; }
  /// If all communication overlaps with the rest.
  double overlapped_ns() const { return device_ns() > network_ns ? device_ns() : network_ns; }
};

struct StepOptions {
  int64_t devices = 0;  ///< partitions of a program for whole arrays; 0: what the module says
  /// Sizes of the mesh's axes, the outermost first; empty: none is known. Their product is the number of devices.
  std::vector<int64_t> mesh = {};
  bool partition = false;    ///< the program is for whole arrays with shardings, and is partitioned first
  double unknown_trips = 1;  ///< of loops whose trip count is not known
  bool fuse = true;          ///< ops are fused as the SDK proposes it
};

/// Estimates a program. The module is changed: partitioned, simplified and fused.
Expected<Step> estimate_step(Module& module, const Machine& machine, const StepOptions& options);

/// Returns the step on more devices of which each does the same: a group whose members differ along the first axis of the
/// mesh has `factor` times as many members, in the outermost level of the network, and nothing else changes. Where no mesh is
/// known, these are groups that differ in that level or have all devices.
Step project(const Step& step, const Machine& machine, int64_t factor);

}  // namespace collet::hlo::estimate
