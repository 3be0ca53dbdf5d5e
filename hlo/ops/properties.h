// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "hlo/ir/ops.h"

/// \file
/// Properties of ops that readers, the verifier, the SPMD partitioner and the conformance suite need, but backends do
/// not. The table of their values is properties.def.

namespace collet::hlo {

/// The operands in which an op is linear, jointly: op(x1 + x2, y1 + y2) = op(x1, y1) + op(x2, y2). Such an op can be done on the
/// terms of an unreduced value.
enum class Linear : uint8_t { kNone, kFirst, kFirstTwo, kBranches /**< operands 1 and 2 */, kAll };

struct OpProperties {
  std::string_view stablehlo = {};  ///< name in StableHLO, if operands, their order and the result are the same there
  Linear linear = Linear::kNone;
  bool mixes_precision = false;  ///< operands may be floats of different precision
  bool result_accuracy = false;  ///< XLA reads the attribute result_accuracy
  bool has_ties = false;         ///< the result depends on which of two equal values, or of two neighbours, is taken
  /// Range of random float operands in which the result is defined and not constant; 0 and 0: any range.
  double low = 0, high = 0;
};

const OpProperties& op_properties(Op op);

}  // namespace collet::hlo
