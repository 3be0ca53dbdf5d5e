// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Recognises kernels and ops that a library of the device can compute instead.

#include <collet/codegen/launch_plan.h>

#include <cstdint>
#include <vector>

#include "sdk/codegen/kernel/kernel.h"

namespace collet::codegen {

/// A matrix product that a kernel computes, and the numbers of the buffers that hold its matrices.
struct ProductMatch {
  LibraryProduct product;
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
};

/// True if a kernel does nothing but multiply two matrices, or batches of matrices, which are in memory with constant
/// distances between rows, columns and batches. The kernel's loops must not be scheduled yet.
bool match_product(const Kernel& kernel, ProductMatch& out);

/// A convolution, or a gradient of one, that libraries can compute.
struct ConvolutionMatch {
  LibraryConvolution convolution;
  /// The dimensions of the node's filter in the order in which the library reads them; empty if the library reads the
  /// filter as it is. For the gradient of a filter they are those of the node's result, which the library writes.
  std::vector<size_t> filter_order;
  std::vector<size_t> reversed;  ///< dimensions of the node's filter along which the library reads it backwards
  /// For the gradient of an input with groups: their number. The library's filter has them outermost; they are the outer
  /// part of dimension `grouped_dimension` of the node's filter.
  int64_t regrouped = 1;
  size_t grouped_dimension = 0;
};

/// True if libraries can compute the convolution `node`. All arrays must have one type. It is one of these:
/// - a convolution with the same padding on both sides, whose input is not dilated;
/// - the gradient of the input of one: its input is dilated, and its window moves by one;
/// - the gradient of the filter of one: its window is larger than its result, and its batch not the outermost dimension.
bool match_convolution(const Graph& graph, const Node& node, ConvolutionMatch& out);

}  // namespace collet::codegen
