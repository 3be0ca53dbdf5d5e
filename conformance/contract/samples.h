// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "conformance/oracle/bounds.h"

namespace collet::conformance {

/// A small program, one of whose results may alias an argument. Its sums and products are exact for small integers.
struct Sample {
  std::string name;
  std::string body;  ///< HLO text without the first line
  Bound bound = {};
};

/// Returns samples of all kinds: elementwise ops, data movement, reductions, products, indexing, sorting, control flow,
/// several results.
const std::vector<Sample>& samples();

}  // namespace collet::conformance
