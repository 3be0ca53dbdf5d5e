// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "hlo/ir/attributes.h"

/// \file
/// Windows and padding along one dimension, without what no element is under. A window and its padding may be larger than
/// any array that memory holds; how much of them meets data is bounded by the array.

namespace collet::hlo {

/// A window along one dimension. Tap `k` of the window at place `p` looks at position p * stride + k * window_dilation -
/// low; element i of the array stands at position i * base_dilation. Where no element stands there is padding or a hole.
struct WindowDim {
  int64_t size = 1, stride = 1, low = 0, high = 0, base_dilation = 1, window_dilation = 1;
  bool reversed = false;
  bool operator==(const WindowDim&) const = default;
};

/// Dimension `d` of `window`.
WindowDim window_dim(const Window& window, size_t d);

/// The least window that sees, at each of `places` places over `elements` elements, the same elements in the same order as
/// `dim`. Taps in front and behind that see nothing but padding at every place are gone, strides and dilations are the least
/// that keep the others where they were, and `high` is what gives just `places` places. Size 0 where no tap sees an
/// element; `dim` itself where there are no places. `dim`, `elements` and `places` belong together as shape inference has it.
WindowDim least_window(const WindowDim& dim, int64_t elements, int64_t places);

/// A dimension of `elements` elements under padding, whose edges may be negative and cut elements off.
struct PaddedDim {
  int64_t size = 0;           ///< of the result; not below 0
  int64_t first = 0;          ///< the first element that is left
  int64_t count = 0;          ///< how many are left, one after another
  int64_t low = 0, high = 0;  ///< what stands in front of them and behind them, none of it negative
};

/// `interior` positions stand between neighbours. The size without the cut fits 64 bits, as shape inference has it.
PaddedDim padded_dim(int64_t elements, int64_t low, int64_t high, int64_t interior);

}  // namespace collet::hlo
