// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Recognises kernels and ops that a library of the device can compute instead.

#include <collet/codegen/kernel.h>
#include <collet/codegen/launch_plan.h>

#include <cstdint>
#include <vector>

#include "sdk/codegen/lower/lower.h"

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
  LibraryOrder input;   ///< how the library reads the node's input
  LibraryOrder filter;  ///< how it reads the node's filter
  /// How the library writes the result: the order of its dimensions, and their sizes in the result's own order. Both are
  /// empty if it writes the result as it is.
  std::vector<size_t> result_order;
  Dims result_dims;
};

/// True if libraries can compute the convolution `node`. All arrays must have one type. It is one of these:
/// - a convolution whose input is not dilated;
/// - the gradient of the input of one: its input is dilated, and its window moves by one;
/// - the gradient of the filter of one: its window is larger than its result, and its batch not the outermost dimension.
///
/// Libraries pad both sides of a dimension alike. For other paddings the array of the input is made larger or smaller.
bool match_convolution(const Graph& graph, const Node& node, ConvolutionMatch& out);

}  // namespace collet::codegen
