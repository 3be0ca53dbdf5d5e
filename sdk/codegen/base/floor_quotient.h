// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace collet::codegen {

/// Returns the quotient of `x` and the positive `y`, rounded down.
constexpr int64_t floor_quotient(int64_t x, int64_t y) {
  return x / y - (x % y < 0 ? 1 : 0);
}

}  // namespace collet::codegen
