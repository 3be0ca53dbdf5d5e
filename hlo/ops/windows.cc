// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/windows.h"

#include <algorithm>
#include <numeric>

namespace collet::hlo {
namespace {

// A type for products of two sizes or strides, each of which fits 64 bits.
__extension__ using Wide = __int128;

Wide floor_quotient(Wide a, Wide b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

Wide extent(int64_t count, int64_t step) {
  return count > 0 ? static_cast<Wide>(count - 1) * step + 1 : 0;
}

}  // namespace

WindowDim window_dim(const Window& window, size_t d) {
  return {window.size[d],       window.stride_at(d),        window.low_at(d),
          window.high_at(d),    window.base_dilation_at(d), window.window_dilation_at(d),
          window.reversed_at(d)};
}

WindowDim least_window(const WindowDim& dim, int64_t elements, int64_t places) {
  if (places <= 0) return dim;
  WindowDim out = dim;
  out.size = 0;
  if (elements <= 0) return out;
  // Tap k reads the positions from k * window_dilation - low on, one stride apart, for all window places.
  const Wide base = extent(elements, dim.base_dilation), reach = static_cast<Wide>(places - 1) * dim.stride;
  const Wide first = std::max<Wide>(0, -floor_quotient(reach - dim.low, dim.window_dilation));
  const Wide last = std::min<Wide>(dim.size - 1, floor_quotient(base - 1 + dim.low, dim.window_dilation));
  if (first > last) return out;
  out.size = static_cast<int64_t>(last - first + 1);
  Wide low = dim.low - first * dim.window_dilation;
  if (places == 1) out.stride = 1;
  if (out.size == 1) out.window_dilation = 1;
  if (elements == 1) out.base_dilation = 1;
  // If all steps are multiples of `step`, they meet an element only if the padding is a multiple of it, too.
  int64_t step = 0;
  if (places > 1) step = std::gcd(step, out.stride);
  if (out.size > 1) step = std::gcd(step, out.window_dilation);
  if (elements > 1) step = std::gcd(step, out.base_dilation);
  if (step > 1) {
    if (low % step != 0) {
      out.size = 0;
      return out;
    }
    low /= step;
    if (places > 1) out.stride /= step;
    if (out.size > 1) out.window_dilation /= step;
    if (elements > 1) out.base_dilation /= step;
  }
  const Wide high = static_cast<Wide>(places - 1) * out.stride + extent(out.size, out.window_dilation) - low -
                    extent(elements, out.base_dilation);
  constexpr Wide kMost = INT64_MAX;
  if (low > kMost || low < -kMost || high > kMost || high < -kMost) return dim;
  out.low = static_cast<int64_t>(low);
  out.high = static_cast<int64_t>(high);
  return out;
}

PaddedDim padded_dim(int64_t elements, int64_t low, int64_t high, int64_t interior) {
  const Wide step = elements > 1 ? static_cast<Wide>(interior) + 1 : 1;
  const Wide size = low + (elements > 0 ? static_cast<Wide>(elements - 1) * step + 1 : 0) + high;
  PaddedDim out;
  out.size = static_cast<int64_t>(std::max<Wide>(size, 0));
  // Element i has position low + i * step.
  const Wide first = std::max<Wide>(0, -floor_quotient(low, step));
  const Wide last = std::min<Wide>(elements - 1, floor_quotient(size - 1 - low, step));
  if (first > last) {
    out.high = out.size;
    return out;
  }
  out.first = static_cast<int64_t>(first);
  out.count = static_cast<int64_t>(last - first + 1);
  out.low = static_cast<int64_t>(low + first * step);
  out.high = static_cast<int64_t>(size - 1 - (low + last * step));
  return out;
}

}  // namespace collet::hlo
