// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Windows of convolution, reduce-window and select-and-scatter as loops.

#include "sdk/codegen/lower/kernel_builder.h"

namespace collet::codegen {

/// A window, one number for each dimension.
struct Window {
  Dims size, stride, low, high, base_dilation, dilation, reversal;
};

Window window_of(const Graph& graph, const collet_window& w);

/// Index in the operand for output position `out` and window position `in` of one dimension; what must hold for the
/// place to exist is added to `inside`.
Index window_index(KernelBuilder& builder, const Window& w, size_t d, const Index& out, const Index& in, int64_t extent,
                   ExprId& inside);

/// The positions of a window that lie on the operand for some of `outputs` results, in one dimension.
struct Reach {
  int64_t first = 0;
  int64_t count = 0;
};
Reach reach_of(const Window& w, size_t d, int64_t extent, int64_t outputs);

/// How a loop walks the elements that a window meets in one dimension.
struct Taps {
  int64_t turns = 0;        ///< of the loop
  int64_t first = 0;        ///< the window's position in the first turn
  bool by_element = false;  ///< a turn is an element of the operand, not a position of the window
};

/// The shorter of two walks, both in ascending order: over those positions of the window that lie on an element for some
/// of `outputs` results, or over the elements. So padding and dilation of any size cost no more than the operand.
Taps taps_of(const Window& w, size_t d, int64_t extent, int64_t outputs);

/// Index in the operand in the turn `turn` of the walk, as window_index.
Index tap_index(KernelBuilder& builder, const Window& w, size_t d, const Taps& taps, const Index& out,
                const Index& turn, int64_t extent, ExprId& inside);

/// Where one product of a convolution finds its factors.
struct ConvolutionPlaces {
  Position input;
  Position filter;
  ExprId exists = kNoExpr;  ///< where it is false, the place lies in the padding
};
/// For a result at `at`; `taps` are the positions in the window, then the number of the input feature within its group.
/// `dims` are those of the input, which may have been copied with its edges.
ConvolutionPlaces convolution_places(KernelBuilder& builder, const Graph& graph, const Node& node, const Window& w,
                                     const Dims& dims, const Position& at, const Position& taps);

}  // namespace collet::codegen
