// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/ir/module.h"
#include "hlo/program/leaves.h"
#include "sdk/runtime/backend.h"

namespace collet::runtime {

/// The speed of a device or of the fallback, for ops without an estimate by the backend.
struct Speed {
  double bytes_per_ns = 10;
  double flops_per_ns = 10;
  double launch_ns = 0;
};

/// Returns the speeds that the device states; those that it does not state are taken from `otherwise`.
Speed speed_of(const DeviceFacts& facts, const Speed& otherwise);

/// The work of one execution of an instruction. Loops count once per iteration; an unknown trip count is taken as
/// kUnknownTrips.
struct Work {
  double flops = 0;
  double bytes = 0;
  Work& operator+=(const Work& o) {
    flops += o.flops;
    bytes += o.bytes;
    return *this;
  }
};
constexpr double kUnknownTrips = 10;

double trips_of(const hlo::Instruction& instr);
Work work_of(const hlo::Module& module, const hlo::Instruction& instr);
/// Returns the arithmetic operations of one execution of the module, without data movement; loops as above.
double arithmetic_of(const hlo::Module& module);
double time_ns(const Work& work, const Speed& speed);
uint64_t leaf_bytes(const hlo::Module& module, hlo::Leaf leaf);

}  // namespace collet::runtime
