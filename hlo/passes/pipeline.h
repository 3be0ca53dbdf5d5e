// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/passes/passes.h"

/// \file
/// Defines the pass pipelines: the order of passes, with the reasons for it, and callbacks that observe them.

namespace collet::hlo {

/// One run of one pass.
struct PassRun {
  std::string_view pass;
  double seconds = 0;
  bool changed = false;
  size_t instructions = 0;  ///< number of instructions after the pass
};

/// Functions that observe the passes of a pipeline. Each may be empty.
struct PassObserver {
  /// Called before and after each pass, for printing and dumping; `number` counts passes from 0.
  std::function<void(std::string_view pass, int number, const Module&)> before;
  std::function<void(std::string_view pass, int number, const Module&, bool changed)> after;
  /// Called before the first pass and after each that changed something; an error ends the run and names the pass. If
  /// it is empty, debug builds run the verifier.
  std::function<Status(const Module&)> verify;
  /// One entry per run is added.
  std::vector<PassRun>* runs = nullptr;
};

/// Runs the passes one after another; true if any changed something. Errors name the pass.
Expected<bool> run_passes(Module& module, PassContext& context, std::span<const std::string_view> names,
                          const PassObserver& observer = {});

/// A named list of passes.
struct Pipeline {
  std::string_view name;
  std::string_view text;
  Expected<bool> (*run)(Module&, PassContext&, const PassObserver&);
};

/// Returns all pipelines: prepare, legalize, optimize, fuse, ...
std::span<const Pipeline> pipelines();
const Pipeline* find_pipeline(std::string_view name);

/// The target-independent pipeline. Afterwards calls are inlined, all values are row-major arrays, and the program is
/// simplified. Except for expansions, the device is asked about the instructions of this form.
Expected<bool> prepare(Module& module, PassContext& context, const PassObserver& observer = {});
/// Runs prepare, then replaces groups of ops that some devices support as one op by calls (see find_patterns).
Expected<bool> prepare_patterns(Module& module, PassContext& context, const PassObserver& observer = {});
/// Asks context.claim about instructions and expands those for which it answers Expand, in rounds until none is left;
/// then cleans up. A second run changes nothing, unless claims change.
Expected<bool> legalize(Module& module, PassContext& context, const PassObserver& observer = {});
/// Proposes fusions, and keeps those that context.take_fusions accepts.
Expected<bool> propose_fusions(Module& module, PassContext& context, const PassObserver& observer = {});
/// Cleans up to a fixed point: simplify, fold, share, drop.
Expected<bool> optimize(Module& module, PassContext& context, const PassObserver& observer = {});

/// Rewrites products as [b,m,k] x [b,k,n] and convolutions as b01f_01io->b01f, and moves reshapes and transposes behind
/// elementwise ops, for devices that support these forms only.
Expected<bool> canonicalize(Module& module, PassContext& context, const PassObserver& observer = {});

/// Runs sharding propagation: afterwards every instruction has a sharding attribute. A second run changes nothing.
Expected<bool> spmd_propagate(Module& module, PassContext& context, const PassObserver& observer = {});

/// Runs SPMD partitioning for context.partition_count partitions: propagates shardings, then writes the program of one
/// partition, which works on tiles. Does nothing for one partition.
Expected<bool> spmd_partition(Module& module, PassContext& context, const PassObserver& observer = {});

}  // namespace collet::hlo
