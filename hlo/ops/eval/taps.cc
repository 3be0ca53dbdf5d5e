// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/eval/taps.h"

namespace collet::hlo::eval {

std::vector<WindowDim> whole_window(const Window& window) {
  std::vector<WindowDim> out;
  for (size_t d = 0; d < window.rank(); ++d) out.push_back(window_dim(window, d));
  return out;
}

std::vector<WindowDim> least_window(const Window& window, std::span<const int64_t> input,
                                    std::span<const int64_t> output) {
  std::vector<WindowDim> out = whole_window(window);
  for (size_t d = 0; d < out.size(); ++d) out[d] = hlo::least_window(out[d], input[d], output[d]);
  return out;
}

Taps::Taps(std::vector<WindowDim> window, std::span<const int64_t> input, std::span<const int64_t> output) {
  constexpr int64_t kLargest = 1 << 18;
  for (size_t d = 0; d < window.size(); ++d) {
    Dimension a{window[d], input[d], {}};
    const int64_t size = a.dim.size;
    if (output[d] <= kLargest && size <= kLargest && output[d] * size <= kLargest) {
      Ints table;
      for (int64_t o = 0; o < output[d]; ++o)
        for (int64_t w = 0; w < size; ++w) table.push_back(compute(a, o, w));
      a.table = std::move(table);
    }
    sizes_.push_back(size);
    dimensions_.push_back(std::move(a));
  }
}

}  // namespace collet::hlo::eval
