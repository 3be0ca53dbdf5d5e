// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/eval/taps.h"

namespace collet::hlo::eval {

Taps::Taps(const Window& window, std::span<const int64_t> input, std::span<const int64_t> output)
    : sizes_(window.size.begin(), window.size.end()) {
  constexpr int64_t kLargest = 1 << 18;
  for (size_t d = 0; d < sizes_.size(); ++d) {
    Along a{sizes_[d],
            input[d],
            window.stride_at(d),
            window.window_dilation_at(d),
            window.low_at(d),
            window.base_dilation_at(d),
            window.reversed_at(d),
            {}};
    if (output[d] <= kLargest && sizes_[d] <= kLargest && output[d] * sizes_[d] <= kLargest) {
      Ints table;
      for (int64_t o = 0; o < output[d]; ++o)
        for (int64_t w = 0; w < sizes_[d]; ++w) table.push_back(compute(a, o, w));
      a.table = std::move(table);
    }
    along_.push_back(std::move(a));
  }
}

}  // namespace collet::hlo::eval
