// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What runs: a tree of steps, each with the memory that it touches, resolved when the program is compiled.

#include <cstdint>
#include <memory>
#include <vector>

#include "sdk/codegen/launch/loaded_code.h"

namespace collet::codegen {

class Threads;

/// Where memory is: an argument, a result, the workspace or the constants, and how far in.
struct Place {
  uint32_t slot = 0;
  uint64_t offset = 0;
};

/// A routine written in C++ with all its parameters bound when the program was compiled.
class LibraryCall {
 public:
  virtual ~LibraryCall() = default;
  /// Operands, results, then scratch memory of `scratch_bytes`.
  virtual void run(char* const* buffers, Threads& threads) const = 0;
  virtual uint64_t scratch_bytes() const { return 0; }
};

enum class StepKind : uint8_t { kKernel, kLibrary, kCopy, kWhile, kConditional };

struct Step;
using StepList = std::vector<Step>;

struct Step {
  StepKind kind = StepKind::kKernel;
  uint32_t first_place = 0;  ///< in LaunchPlan::places
  uint32_t places = 0;
  KernelFunction kernel = nullptr;
  KernelFunction tail = nullptr;  ///< runs after all of the kernel, whole
  uint32_t tail_place = 0;        ///< the first of its places
  int64_t tail_range = 1;
  int64_t range = 1;   ///< of the kernel's first loop
  int64_t grain = 1;   ///< a part of the range is a multiple of this
  double cost_ns = 0;  ///< estimate of the whole step
  uint64_t bytes = 0;  ///< kCopy
  bool parallel = false;
  uint32_t index_bytes = 0;  ///< kConditional: width of the branch number; 0: a pred, true is branch 0
  const LibraryCall* library = nullptr;
  std::vector<StepList> children;  ///< kWhile: condition, body; kConditional: branches
};

struct LaunchPlan {
  StepList steps;
  std::vector<Place> places;
  std::unique_ptr<LoadedCode> code;
  std::vector<std::unique_ptr<LibraryCall>> library;
  char* constants = nullptr;  ///< 64-byte aligned
  uint64_t constant_bytes = 0;
  uint64_t workspace_bytes = 0;
  uint64_t traffic_bytes = 0;
  uint32_t kernels = 0;
  uint32_t arguments = 0;
  uint32_t results = 0;
  std::vector<uint64_t> argument_bytes;
  std::vector<uint64_t> result_bytes;

  LaunchPlan() = default;
  LaunchPlan(const LaunchPlan&) = delete;
  ~LaunchPlan();
};

/// Slots of a plan: arguments, results, workspace, constants.
inline uint32_t result_slot(const LaunchPlan& plan, uint32_t i) {
  return plan.arguments + i;
}
inline uint32_t workspace_slot(const LaunchPlan& plan) {
  return plan.arguments + plan.results;
}
inline uint32_t constant_slot(const LaunchPlan& plan) {
  return plan.arguments + plan.results + 1;
}

/// Runs a plan; `bases` has an address for each slot. The workspace begins with room for the addresses of all places.
void run(const LaunchPlan& plan, char* const* bases, Threads& threads);

}  // namespace collet::codegen
