// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Indices of the windows of convolution, reduce-window and select-and-scatter, as expressions of loops.

#include "sdk/codegen/lower/kernel_builder.h"

namespace collet::codegen {

/// The attributes of a window: each list has one number for each dimension.
struct Window {
  Dims size, stride, low, high, base_dilation, dilation, reversal;
};

Window window_of(const Graph& graph, const collet_window& w);

/// Returns the index in the operand for output position `out` and window position `in` of one dimension. The condition that the
/// operand has that element is added to `inside`.
Index window_index(KernelBuilder& builder, const Window& w, size_t d, const Index& out, const Index& in, int64_t extent,
                   ExprId& inside);

/// The positions of a window, in one dimension, that cover an element of the operand for at least one of the results.
struct Reach {
  int64_t first = 0;
  int64_t count = 0;
};
Reach reach_of(const Window& w, size_t d, int64_t extent, int64_t outputs);

/// A loop over the elements that a window covers in one dimension.
struct Taps {
  int64_t iterations = 0;   ///< number of iterations
  int64_t first = 0;        ///< the window's position in the first iteration
  bool by_element = false;  ///< whether the loop runs over elements of the operand instead of positions of the window
};

/// Returns the shorter of two loops, both in ascending order: over those positions of the window that cover an element for some
/// of `outputs` results, or over the elements. Padding and dilation thus never cost more than one loop over the operand.
Taps taps_of(const Window& w, size_t d, int64_t extent, int64_t outputs);

/// Like window_index, for iteration `iteration` of the loop `taps`.
Index tap_index(KernelBuilder& builder, const Window& w, size_t d, const Taps& taps, const Index& out,
                const Index& iteration, int64_t extent, ExprId& inside);

/// A convolution: its operands, which of their dimensions mean what, and its window.
struct Convolution {
  ValueId input = kNone, filter = kNone, result = kNone;
  Dims input_dims, filter_dims, result_dims;
  size_t input_batch = 0, input_feature = 0, kernel_input_feature = 0, kernel_output_feature = 0, output_batch = 0,
         output_feature = 0;
  std::vector<size_t> input_spatial, kernel_spatial, output_spatial;
  int64_t feature_groups = 1, batch_groups = 1;
  Window window;

  int64_t groups() const { return std::max(feature_groups, batch_groups); }
  /// Returns the number of input features of a group, and of output features of a group.
  int64_t features() const { return filter_dims[kernel_input_feature]; }
  int64_t filters() const { return result_dims[output_feature] / groups(); }
};

Convolution convolution_of(const Graph& graph, const Node& node);

/// The positions of the two factors of one product in a convolution.
struct ConvolutionPlaces {
  Position input;
  Position filter;
  ExprId exists = kNoExpr;  ///< false if the position is in the padding; kNoExpr: always true
};
/// Returns the positions for a result at `at`. `taps` are the positions in the window, followed by the number of the
/// input feature within its group.
ConvolutionPlaces convolution_places(KernelBuilder& builder, const Convolution& c, const Position& at,
                                     const Position& taps);

}  // namespace collet::codegen
