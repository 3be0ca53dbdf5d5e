// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Kernels that a library of the device has, too.

#include <collet/codegen/launch_plan.h>

#include <cstdint>
#include <vector>

#include "sdk/codegen/kernel/kernel.h"

namespace collet::codegen {

/// A matrix product that a kernel computes and nothing else, and the kernel's buffers that hold its matrices.
struct ProductMatch {
  LibraryProduct product;
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
};

/// Whether a kernel only multiplies two matrices, or batches of them, that are in memory with constant distances between rows, columns and
/// batches: nothing is fused to it. The kernel's loops are not scheduled yet.
bool match_product(const Kernel& kernel, ProductMatch& out);

/// A convolution that libraries have.
struct ConvolutionMatch {
  LibraryConvolution convolution;
  /// The dimensions of the filter in the order in which the library wants them; empty if it has that order.
  std::vector<size_t> filter_order;
};

/// Whether libraries have the convolution `node`: no holes in the input, the same padding on both sides, a window that is walked forwards,
/// one type.
bool match_convolution(const Graph& graph, const Node& node, ConvolutionMatch& out);

}  // namespace collet::codegen
