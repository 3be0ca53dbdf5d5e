// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

namespace collet::codegen {

/// The order of elements.
struct KeyRule {
  uint32_t type = 0;
  bool descending = false;
  bool equal_zeros = false;  ///< -0 equals 0
  bool equal_nans = false;   ///< all NaNs are equal and come after infinity, whatever their signs and payloads

  bool operator==(const KeyRule&) const = default;
  auto operator<=>(const KeyRule&) const = default;
};

}  // namespace collet::codegen
