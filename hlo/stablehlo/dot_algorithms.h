// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "hlo/ir/attributes.h"

namespace collet::hlo {

/// An algorithm of matrix products, described as StableHLO does. It has one component per operand in all algorithms
/// here.
struct AlgorithmParts {
  Algorithm algorithm = Algorithm::UNSET;
  Type operand = Type::Invalid;  ///< Invalid stands for TF32, which is not a type of values
  Type accumulation = Type::F32;
  int64_t operations = 1;
  bool imprecise = false;
};

/// Returns the description of an algorithm; null for UNSET.
const AlgorithmParts* parts_of(Algorithm algorithm);
/// Returns the HLO algorithm of that description; UNSET if there is none. Any two types of 8-bit floats give the same
/// algorithm.
Algorithm algorithm_of(const AlgorithmParts& parts);

}  // namespace collet::hlo
