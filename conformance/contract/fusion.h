// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "conformance/contract/samples.h"

namespace collet::conformance {

/// A fusion instruction, described by the HLO text of its body.
struct Fusion {
  std::string name;                 ///< part of the names of its cases
  std::string lines;                ///< the instructions of the body, one per line; the last one is the root
  std::string result;               ///< the result's shape, as HLO text
  std::vector<std::string> shapes;  ///< shapes of the operands, which `lines` calls x, y, z, u, v, w in this order
  const char* kind = "kLoop";
  std::string computations = {};
  Bound bound = {};
};

/// Fusions of two and three ops, of each kind that the SDK proposes: elementwise ops whose other operand is a constant, a
/// scalar, a broadcast row or a broadcast column, in both operand positions; ops before and after a reduction; ops after a
/// matrix product or a convolution; fusions with several results.
std::vector<Fusion> fusion_shapes();
/// Returns a program whose entry consists of the fusion and its parameters.
Sample sample_of(const Fusion& fusion);

}  // namespace collet::conformance
