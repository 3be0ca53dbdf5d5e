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

/// A convolution that libraries can compute.
struct ConvolutionMatch {
  LibraryConvolution convolution;
  /// The dimensions of the filter in the order in which the library needs them; empty if they have that order.
  std::vector<size_t> filter_order;
};

/// True if libraries can compute the convolution `node`: the input is not dilated, the padding is the same on both
/// sides, the window is not reversed, and all arrays have one type.
bool match_convolution(const Graph& graph, const Node& node, ConvolutionMatch& out);

}  // namespace collet::codegen
