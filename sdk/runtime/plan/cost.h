// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "hlo/ir/module.h"
#include "hlo/program/leaves.h"
#include "sdk/runtime/backend/backend.h"

namespace collet::runtime {

/// The speed of a device or of the fallback, for ops without an estimate by the backend.
struct Speed {
  double bytes_per_ns = 10;
  double flops_per_ns = 10;
  double launch_ns = 0;
  std::vector<collet_peak> peaks = {};  ///< where it is another one than flops_per_ns
};

/// Returns the speeds that the device states; those that it does not state are taken from `otherwise`.
Speed speed_of(const DeviceFacts& facts, const Speed& otherwise);

/// The work of one execution of an instruction. Loops count once per iteration; an unknown trip count is taken as
/// kUnknownTrips.
struct Work {
  /// Operations of one kind on one element type. A value of a function counts as kFlopsOfFunction.
  struct Part {
    uint32_t work = COLLET_PEAK_ARITHMETIC;  ///< COLLET_PEAK_*
    uint32_t type = COLLET_TYPE_INVALID;
    double flops = 0;
  };
  std::vector<Part> parts;
  double bytes = 0;

  double flops() const;
  void add(const Part& part);
  Work& operator+=(const Work& o);
};
constexpr double kFlopsOfFunction = 15;
constexpr double kUnknownTrips = 10;

double trips_of(const hlo::Instruction& instr);
Work work_of(const hlo::Module& module, const hlo::Instruction& instr);
/// Returns the arithmetic operations of one execution of the module, without data movement; loops as above.
double arithmetic_of(const hlo::Module& module);
double time_ns(const Work& work, const Speed& speed);
uint64_t leaf_bytes(const hlo::Module& module, hlo::Leaf leaf);

}  // namespace collet::runtime
