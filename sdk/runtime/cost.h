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

/// The speeds that the device states; what it does not is taken as `otherwise`.
Speed speed_of(const DeviceFacts& facts, const Speed& otherwise);

/// Work of one execution of an instruction. Loops count with their trips, unknown ones as kUnknownTrips.
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
/// Arithmetic of one execution of the module, without what only moves data; loops as above.
double arithmetic_of(const hlo::Module& module);
double time_ns(const Work& work, const Speed& speed);
uint64_t leaf_bytes(const hlo::Module& module, hlo::Leaf leaf);

}  // namespace collet::runtime
