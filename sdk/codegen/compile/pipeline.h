// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What the compiler does, and in which order, for each kind of machine.

#include <span>

#include "sdk/codegen/compile/compiler.h"

namespace collet::codegen {

/// What a step did to a kernel.
enum class PipelineOutcome : uint8_t {
  kUnchanged,
  kChanged,
  kReplaced,  ///< it added kernels that do the work of this one, each of which begins with the first step
};

/// A kernel on its way to the launch plan.
struct PipelineWork {
  KernelPlan& plan;
  std::vector<Compiler::Draft>& drafts;
  bool has_time = false;  ///< the kernel has the time of what was added before
  bool has_merged_rows = false;
  KernelPlan rest = {};  ///< a kernel for a part of the points, which follows; without loops if there is none
};

/// The tables of steps for one kind of machine. Each step is a function of the compiler; one that does not apply does nothing. The
/// artifact kernels.txt lists the steps that changed each kernel.
struct Pipeline {
  struct KernelStep {
    const char* name;
    PipelineOutcome (Compiler::*run)(PipelineWork& work);
  };

  /// Takes groups of a block that are compiled together, before the others.
  struct GroupStep {
    const char* name;
    bool if_fusing;  ///< the step is left out if CompileOptions::fuse is false
    void (Compiler::*run)(Compiler::Groups& groups);
  };

  /// Takes a node that does not become kernels of the usual kind. Returns false for other nodes.
  struct NodeStep {
    const char* name;
    bool (Compiler::*take)(const Node& node, Compiler::Drafts& drafts);
  };

  /// Describes a function's call in a step of the launch plan.
  using Describe = void (Compiler::*)(const Kernel& kernel, Step& step) const;

  const char* machine;  ///< the kind of machine, as kernels.txt names it
  std::span<const GroupStep> group_steps;
  std::span<const NodeStep> node_steps;
  std::span<const KernelStep> kernel_steps;  ///< the last one replaces every kernel, by a step of the launch plan
  Describe describe;
  NodeLimits (*node_limits)(const Target& target);
  bool splits_edges;        ///< FusionOptions::split_edges
  bool has_micro_kernels;   ///< products are computed by micro-kernels
  bool has_blocks_of_rows;  ///< a concatenation is written in blocks of rows
  bool has_lanes;           ///< kernels have a loop in lanes
  /// Loops with a known number of iterations count on the host: a condition that the device computes would make the host
  /// wait in each iteration.
  bool counts_on_host;
  bool has_routines;  ///< sorts, transforms and factorizations are routines of the host
};

/// Returns the pipeline for a target and a form of code.
const Pipeline& pipeline_for(const Target& target, CodeForm form);

}  // namespace collet::codegen
