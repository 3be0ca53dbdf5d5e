// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "hlo/ir/attributes.h"
#include "hlo/ir/shape.h"

/// \file
/// Iteration over the indices of row-major arrays, for code that computes results element by element.

namespace collet::conformance {

using Indices = std::vector<int64_t>;

inline Indices sizes_of(const hlo::Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

/// Returns row-major strides, in elements.
inline Indices strides_of(const hlo::Shape& shape) {
  Indices strides(static_cast<size_t>(shape.rank()));
  int64_t step = 1;
  for (int d = shape.rank(); d-- > 0;) {
    strides[static_cast<size_t>(d)] = step;
    step *= shape.dim(d);
  }
  return strides;
}

/// Advances `index` in row-major order. Returns false after the last index, and sets `index` to zeros then.
inline bool advance(Indices& index, const Indices& sizes) {
  for (size_t d = index.size(); d-- > 0;) {
    if (++index[d] < sizes[d]) return true;
    index[d] = 0;
  }
  return false;
}

inline bool is_empty(const Indices& sizes) {
  return std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
}

/// Returns entry `d` of a list.
inline int64_t at(const Indices& list, int64_t d) {
  return list[static_cast<size_t>(d)];
}

inline bool is_in(std::span<const int64_t> dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

/// Returns the element, of `size` in dimension `d`, that tap `tap` of the window reads for result index `place`; -1 if the tap is in
/// padding or between dilated elements.
inline int64_t element_seen(const hlo::Window& window, size_t d, int64_t place, int64_t tap, int64_t size) {
  const int64_t position = place * window.stride_at(d) + tap * window.window_dilation_at(d) - window.low_at(d),
                dilation = window.base_dilation_at(d);
  if (position < 0 || position % dilation != 0 || position / dilation >= size) return -1;
  return position / dilation;
}

}  // namespace collet::conformance
