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

/// Counts over a module. Each computation counts once: a loop's body as one iteration. Computations that a reduce or
/// map calls for each element count as part of their callers' flops.
struct Statistics {
  int64_t computations = 0;
  int64_t instructions = 0;
  int64_t parameters = 0;  ///< parameters of the entry, with tuples flattened
  int64_t results = 0;     ///< results of the entry, with tuples flattened
  double parameter_bytes = 0;
  double result_bytes = 0;
  double constant_bytes = 0;
  double flops = 0;  ///< operations on floats and integers; a multiply-add counts as two
  double bytes = 0;  ///< bytes that kernels read and write if nothing is fused
  int64_t loops = 0;
  std::array<OpCount, hlo::kLastOp + 1> ops{};
  std::array<int64_t, 64> types{};  ///< number of results of each element type
};

Statistics collect_statistics(const hlo::Module& module);
/// Returns the statistics as readable text.
std::string statistics_text(const hlo::Module& module, const Statistics& statistics);
/// Writes the statistics as one JSON object.
void statistics_json(const hlo::Module& module, const Statistics& statistics, JsonWriter& json);

}  // namespace collet::tool
