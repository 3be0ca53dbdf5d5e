// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/passes/passes.h"

/// \file
/// The order of passes, with the reasons for it, and what may watch them run.

namespace collet::hlo {

/// One run of one pass.
struct PassRun {
  std::string_view pass;
  double seconds = 0;
  bool changed = false;
  size_t instructions = 0;  ///< after it
};

/// Functions that observe the passes of a pipeline. Each may be empty.
struct PassObserver {
  /// Before and after each pass, for printing and dumping; `number` counts runs from 0.
  std::function<void(std::string_view pass, int number, const Module&)> before;
  std::function<void(std::string_view pass, int number, const Module&, bool changed)> after;
  /// Called before the first pass and after each that changed something; an error ends the run and names the pass. Debug
  /// builds put the verifier here where nothing else stands.
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

/// prepare, legalize, optimize, fuse, ...
std::span<const Pipeline> pipelines();
const Pipeline* find_pipeline(std::string_view name);

/// Target-independent: one computation of arrays, row-major, simplified. What is asked about afterwards is what a device
/// will see, but for expansion.
Expected<bool> prepare(Module& module, PassContext& context, const PassObserver& observer = {});
/// prepare, and then calls for what some devices take as one: what such a device is asked about.
Expected<bool> prepare_patterns(Module& module, PassContext& context, const PassObserver& observer = {});
/// Asks context.claim and expands what it says, round by round until nothing is left to expand; then cleans up. The
/// second run changes nothing, unless claims change.
Expected<bool> legalize(Module& module, PassContext& context, const PassObserver& observer = {});
/// Proposes fusions and keeps those that context.take_fusions takes.
Expected<bool> propose_fusions(Module& module, PassContext& context, const PassObserver& observer = {});
/// Cleans up to a fixed point: simplify, fold, share, drop.
Expected<bool> optimize(Module& module, PassContext& context, const PassObserver& observer = {});

/// Products as [b,m,k] x [b,k,n], convolutions as b01f_01io->b01f, reshapes and transposes behind elementwise ops: for
/// devices that have those forms alone.
Expected<bool> canonicalize(Module& module, PassContext& context, const PassObserver& observer = {});

/// Sharding propagation: every instruction states the sharding that it gets. A second run changes nothing.
Expected<bool> spmd_propagate(Module& module, PassContext& context, const PassObserver& observer = {});

/// SPMD partitioning, of context.partition_count partitions: what spmd_propagate does, then a module of tiles. Nothing for
/// one partition.
Expected<bool> spmd_partition(Module& module, PassContext& context, const PassObserver& observer = {});

}  // namespace collet::hlo
