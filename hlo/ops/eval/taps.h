// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "hlo/ops/eval/strided.h"
#include "hlo/ops/windows.h"

namespace collet::hlo::eval {

/// The dimensions of `window`, as they are.
std::vector<WindowDim> whole_window(const Window& window);
/// The dimensions of the least window that sees the same (see least_window). `input` and `output`: sizes along them.
std::vector<WindowDim> least_window(const Window& window, std::span<const int64_t> input,
                                    std::span<const int64_t> output);

/// Which input element a window position touches, dimension by dimension.
class Taps {
 public:
  /// `input` and `output`: sizes along the window's dimensions.
  Taps(std::vector<WindowDim> window, std::span<const int64_t> input, std::span<const int64_t> output);
  size_t rank() const { return sizes_.size(); }
  /// The window's own sizes.
  const Ints& sizes() const { return sizes_; }
  const WindowDim& dim(size_t d) const { return dimensions_[d].dim; }
  /// Input position under window position `w` of output `o` along dimension `d`; -1 in padding and in holes.
  int64_t at(size_t d, int64_t o, int64_t w) const {
    const Dimension& a = dimensions_[d];
    return a.table.empty() ? compute(a, o, w) : a.table[static_cast<size_t>(o * sizes_[d] + w)];
  }

 private:
  struct Dimension {
    WindowDim dim;
    int64_t input = 0;
    Ints table;  // left empty when it would be large
  };
  static int64_t compute(const Dimension& a, int64_t o, int64_t w) {
    const int64_t tap = a.dim.reversed ? a.dim.size - 1 - w : w;
    const int64_t position = o * a.dim.stride + tap * a.dim.window_dilation - a.dim.low;
    return position >= 0 && position % a.dim.base_dilation == 0 && position / a.dim.base_dilation < a.input
               ? position / a.dim.base_dilation
               : -1;
  }

  Ints sizes_;
  std::vector<Dimension> dimensions_;
};

}  // namespace collet::hlo::eval
