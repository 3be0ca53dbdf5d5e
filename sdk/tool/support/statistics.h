// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "hlo/base/json.h"
#include "hlo/ir/module.h"

namespace collet::tool {

/// The contribution of one opcode to a module.
struct OpCount {
  int64_t instructions = 0;
  double flops = 0;
  double bytes = 0;
};

/// Counts over a module. Each computation counts once: bodies of loops as one trip, and those that reduce or map call per
/// element are part of their callers' flops.
struct Statistics {
  int64_t computations = 0;
  int64_t instructions = 0;
  int64_t parameters = 0;  ///< of the entry, tuples flattened
  int64_t results = 0;     ///< of the entry, tuples flattened
  double parameter_bytes = 0;
  double result_bytes = 0;
  double constant_bytes = 0;
  double flops = 0;  ///< of floats and integers alike, a multiply-add as two
  double bytes = 0;  ///< read and written by kernels when nothing is fused
  int64_t loops = 0;
  std::array<OpCount, hlo::kLastOp + 1> ops{};
  std::array<int64_t, 64> types{};  ///< results of each element type
};

Statistics collect_statistics(const hlo::Module& module);
/// Returns the statistics as text for people.
std::string statistics_text(const hlo::Module& module, const Statistics& statistics);
/// One JSON object.
void statistics_json(const hlo::Module& module, const Statistics& statistics, JsonWriter& json);

}  // namespace collet::tool
