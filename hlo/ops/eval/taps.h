// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "hlo/ir/attributes.h"
#include "hlo/ops/eval/strided.h"

namespace collet::hlo::eval {

/// Which input element a window position touches, dimension by dimension.
class Taps {
 public:
  /// `input` and `output`: sizes along the window's dimensions.
  Taps(const Window& window, std::span<const int64_t> input, std::span<const int64_t> output);
  size_t rank() const { return sizes_.size(); }
  /// The window's own sizes.
  const Ints& sizes() const { return sizes_; }
  /// Input position under window position `w` of output `o` along dimension `d`; -1 in padding and in holes.
  int64_t at(size_t d, int64_t o, int64_t w) const {
    const Along& a = along_[d];
    return a.table.empty() ? compute(a, o, w) : a.table[static_cast<size_t>(o * sizes_[d] + w)];
  }

 private:
  struct Along {
    int64_t window = 1, input = 0, stride = 1, dilation = 1, low = 0, base_dilation = 1;
    bool reversed = false;
    Ints table;  // left empty when it would be large
  };
  static int64_t compute(const Along& a, int64_t o, int64_t w) {
    const int64_t position = o * a.stride + (a.reversed ? a.window - 1 - w : w) * a.dilation - a.low;
    return position >= 0 && position % a.base_dilation == 0 && position / a.base_dilation < a.input
               ? position / a.base_dilation
               : -1;
  }

  Ints sizes_;
  std::vector<Along> along_;
};

}  // namespace collet::hlo::eval
