// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "hlo/ir/attributes.h"

namespace collet::hlo {

/// The parts of an algorithm of products, in StableHLO's terms: each operand has one component.
struct AlgorithmParts {
  Algorithm algorithm = Algorithm::UNSET;
  Type operand = Type::Invalid;  ///< Invalid: TF32, which no value has
  Type accumulation = Type::F32;
  int64_t operations = 1;
  bool imprecise = false;
};

/// Null for UNSET.
const AlgorithmParts* parts_of(Algorithm algorithm);
/// UNSET where no algorithm of HLO is made of these. Any two types of 8-bit floats are one algorithm.
Algorithm algorithm_of(const AlgorithmParts& parts);

}  // namespace collet::hlo
