// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "conformance/mutants/mutations.h"

/// \file
/// Simulates kernels that are wrong for some operands, in ways that occur in practice.

namespace collet::mutants {

/// An element of an array: its bits, and its COLLET_TYPE_*.
struct Element {
  uint32_t type = 0;
  uint64_t bits = 0;
};

/// Returns the element that a kernel with this fault stores if `right` is the right result for these operands.
uint64_t wrong_result(KernelMutation mutation, uint32_t op, const Element& right, std::span<const Element> operands);

/// Returns the index that a gather, scatter or dynamic slice with this fault uses instead of `index`, in a dimension of
/// `size` elements.
int64_t wrong_index(IndexMutation mutation, uint32_t type, int64_t index, int64_t size);

}  // namespace collet::mutants
