// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "hlo/ops/eval/strided.h"
#include "hlo/ops/windows.h"

namespace collet::hlo::eval {

/// Returns the dimensions of `window` unchanged.
std::vector<WindowDim> whole_window(const Window& window);
/// Returns the dimensions of the smallest window that reads the same elements (see least_window in windows.h). `input`
/// and `output` are the sizes along them.
std::vector<WindowDim> least_window(const Window& window, std::span<const int64_t> input,
                                    std::span<const int64_t> output);

/// Computes which input element a window position reads, dimension by dimension.
class Taps {
 public:
  /// `input` and `output`: sizes along the window's dimensions.
  Taps(std::vector<WindowDim> window, std::span<const int64_t> input, std::span<const int64_t> output);
  size_t rank() const { return sizes_.size(); }
  /// Returns the sizes of the window.
  const Ints& sizes() const { return sizes_; }
  const WindowDim& dim(size_t d) const { return dimensions_[d].dim; }
  /// Returns the input index that window position `w` of output `o` reads along dimension `d`; -1 in padding and in
  /// holes of dilation.
  int64_t at(size_t d, int64_t o, int64_t w) const {
    const Dimension& a = dimensions_[d];
    return a.table.empty() ? compute(a, o, w) : a.table[static_cast<size_t>(o * sizes_[d] + w)];
  }

 private:
  struct Dimension {
    WindowDim dim;
    int64_t input = 0;
    Ints table;  // precomputed indices; empty if the table would be large
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
