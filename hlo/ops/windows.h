// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "hlo/ir/attributes.h"

/// \file
/// Reduces windows and padding along one dimension to the part that meets elements. A window and its padding may be
/// larger than any array in memory; the part that meets data is bounded by the size of the array.

namespace collet::hlo {

/// A window along one dimension. Tap `k` of the window at place `p` reads position p * stride + k * window_dilation -
/// low; element i of the array has position i * base_dilation. Positions without an element are padding or holes.
struct WindowDim {
  int64_t size = 1, stride = 1, low = 0, high = 0, base_dilation = 1, window_dilation = 1;
  bool reversed = false;
  bool operator==(const WindowDim&) const = default;
};

/// Returns dimension `d` of `window`.
WindowDim window_dim(const Window& window, size_t d);

/// Returns the smallest window that reads, at each of `places` places over `elements` elements, the same elements in
/// the same order as `dim`. Leading and trailing taps that read only padding at every place are removed, strides and
/// dilations are as small as possible, and `high` is chosen to give exactly `places` places. The size is 0 if no tap
/// reads an element; `dim` is returned unchanged if there are no places. `dim`, `elements` and `places` must be
/// consistent with shape inference.
WindowDim least_window(const WindowDim& dim, int64_t elements, int64_t places);

/// A dimension of `elements` elements after padding, whose edges may be negative and then remove elements.
struct PaddedDim {
  int64_t size = 0;           ///< size of the result; not negative
  int64_t first = 0;          ///< the first element that remains
  int64_t count = 0;          ///< number of remaining elements, which are consecutive
  int64_t low = 0, high = 0;  ///< padding before and after them; not negative
};

/// Computes the padded dimension; `interior` positions are inserted between neighbours. The size before removal must
/// fit 64 bits, as shape inference ensures.
PaddedDim padded_dim(int64_t elements, int64_t low, int64_t high, int64_t interior);

}  // namespace collet::hlo
