// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "conformance/oracle/bounds.h"

namespace collet::conformance {

/// A small program whose results can lie where its arguments lie. Sums and products in it are exact for small whole numbers.
struct Sample {
  std::string name;
  std::string body;  ///< HLO text without the first line
  Bound bound = {};
};

/// Of all kinds: elementwise, movement, reductions, products, indexing, sorting, control flow, several results.
const std::vector<Sample>& samples();

}  // namespace collet::conformance
