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
#include "sdk/runtime/cost.h"
#include "sdk/runtime/verdicts.h"

/// \file
/// Who runs what: convex clusters of a module's instructions, on the device or the fallback, chosen by cost; and the
/// control flow that the host runs around them.

namespace collet::runtime {

enum class Side : uint8_t { Device, Fallback, Host };
std::string_view side_name(Side side);

/// The constraints that earlier attempts to compile have found.
struct Constraints {
  std::map<hlo::InstrId, std::string> fallback;  ///< these run on the fallback, and why
  std::map<hlo::InstrId, int> cuts;              ///< a new cluster begins here; how often it was asked for
};

struct PartitionInput {
  const hlo::Module& module;
  const Verdicts& device;
  const DeviceFacts& device_facts;
  std::string device_name;
  /// Null: no fallback.
  const Verdicts* fallback = nullptr;
  const DeviceFacts* fallback_facts = nullptr;
  std::string fallback_name;
  const Constraints& constraints;
  /// replica-id and partition-id are the host's.
  bool host_gives_ids = false;
  /// There are several participants: the host does the collectives that the device does not take.
  bool several = false;
  /// Everything that the device accepts stays there, whatever it costs.
  bool ignore_costs = false;
  /// The host does the custom calls of these.
  std::span<const collet_host_function> host_functions;
};

/// Instructions that are compiled and launched together; or one instruction of the host's.
struct ClusterPlan {
  Side side = Side::Device;
  std::vector<hlo::InstrId> members;  ///< operands before users; constants that they use among them
  std::vector<hlo::Leaf> inputs;
  std::vector<hlo::Leaf> outputs;
  double cost_ns = 0;  ///< of one execution, crossings aside
};

/// A computation as the host runs it: clusters in an order in which inputs are there.
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
  std::map<hlo::CompId, ComputationPlan> computations;  ///< the entry, and bodies that the host runs
  std::map<hlo::InstrId, Placement> placements;
};

/// UNIMPLEMENTED, with the instruction's name, when neither device nor fallback takes something.
Expected<Partition> partition(const PartitionInput& input);

}  // namespace collet::runtime
