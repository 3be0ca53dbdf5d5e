// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Recognises kernels and ops that a library of the device can compute instead.

#include <collet/codegen/launch_plan.h>

#include <cstdint>
#include <vector>

#include "sdk/codegen/kernel/kernel.h"
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
  LibraryOrder filter;  ///< how the library reads the node's filter; for the gradient of a filter, it reads it as it is
  /// For the gradient of a filter: the dimensions of the node's result in the order in which the library writes them;
  /// empty if it writes them as they are.
  std::vector<size_t> result_order;
};

/// True if libraries can compute the convolution `node`. All arrays must have one type. It is one of these:
/// - a convolution with the same padding on both sides, whose input is not dilated;
/// - the gradient of the input of one: its input is dilated, and its window moves by one;
/// - the gradient of the filter of one: its window is larger than its result, and its batch not the outermost dimension.
bool match_convolution(const Graph& graph, const Node& node, ConvolutionMatch& out);

}  // namespace collet::codegen
