// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <map>
#include <span>
#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"
#include "hlo/program/leaves.h"
#include "sdk/runtime/plan/cost.h"
#include "sdk/runtime/plan/verdicts.h"

/// \file
/// Divides a module's instructions into convex clusters on the device or the fallback, chosen by cost, and determines
/// the control flow that the host runs around them.

namespace collet::runtime {

enum class Side : uint8_t { Device, Fallback, Host };
std::string_view side_name(Side side);

/// The constraints that earlier attempts to compile have found.
struct Constraints {
  std::map<hlo::InstrId, std::string> fallback;  ///< instructions that must run on the fallback, and the reason
  /// Instructions at which a new cluster must begin; how often that was requested.
  std::map<hlo::InstrId, int> cuts;
};

struct PartitionInput {
  const hlo::Module& module;
  const Verdicts& device;
  const DeviceFacts& device_facts;
  std::string device_name;
  /// Verdicts of the fallback; null if there is none.
  const Verdicts* fallback = nullptr;
  const DeviceFacts* fallback_facts = nullptr;
  std::string fallback_name;
  const Constraints& constraints;
  /// The host provides replica-id and partition-id.
  bool host_gives_ids = false;
  /// There are several participants: the host runs the collectives that the device does not support.
  bool several = false;
  /// Participants are in several processes: work that a collective does not need runs while it waits for the others.
  bool across = false;
  /// All instructions that the device accepts run there, whatever they cost.
  bool ignore_costs = false;
  /// The host runs the custom calls of these functions.
  std::span<const collet_host_function> host_functions;
  /// If the program becomes one cluster, all parameters are inputs of it, used or not, so that a caller of its code finds
  /// them by their numbers.
  bool keep_parameters = false;
};

/// Instructions that are compiled and launched together, or one instruction that the host runs.
struct ClusterPlan {
  Side side = Side::Device;
  std::vector<hlo::InstrId> members;  ///< operands before users; includes constants that they use
  std::vector<hlo::Leaf> inputs;
  std::vector<hlo::Leaf> outputs;
  double cost_ns = 0;  ///< cost of one execution, without copies between the sides
};

/// A computation that the host runs: its clusters in an order in which their inputs are available.
struct ComputationPlan {
  std::vector<ClusterPlan> clusters;
  double cost_ns = 0;
  bool uses_device = false;
};

/// The device that runs an instruction, and the reason.
struct Placement {
  Side side = Side::Device;
  std::string reason;
  double cost_ns = 0;
};

struct Partition {
  /// Plans of the entry and of the computations that the host runs.
  std::map<hlo::CompId, ComputationPlan> computations;
  std::map<hlo::InstrId, Placement> placements;
};

/// Partitions a module. Returns UNIMPLEMENTED with the instruction's name if neither device nor fallback supports it.
Expected<Partition> partition(const PartitionInput& input);

}  // namespace collet::runtime
