// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Functions on sets of a kernel's loops.

#include <collet/codegen/kernel.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collet::codegen {

/// Returns the outer loops as a bit set.
inline uint64_t outer_loops(const Kernel& kernel) {
  return kernel.outer >= 64 ? ~uint64_t{0} : (uint64_t{1} << kernel.outer) - 1;
}

/// Returns the inner loops as a bit set.
inline uint64_t inner_loops(const Kernel& kernel) {
  const size_t n = kernel.loops.size();
  return (n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1) & ~outer_loops(kernel);
}

/// Returns the product of the sizes of the loops in a set.
inline int64_t points_of(const Kernel& kernel, uint64_t loops) {
  int64_t n = 1;
  for (size_t l = 0; l < kernel.loops.size(); ++l) {
    if ((loops >> l & 1) != 0) n *= kernel.loops[l].size;
  }
  return n;
}

/// Returns whether a number divides the size of an inner loop, which can then be split into so many parts.
inline bool divides_inner_loop(const Kernel& kernel, int64_t parts) {
  return std::any_of(kernel.loops.begin() + static_cast<ptrdiff_t>(kernel.outer), kernel.loops.end(),
                     [&](const Loop& l) { return l.size % parts == 0; });
}

/// Returns the loops that the terms of an index depend on. `dependencies` is the result of loop_dependencies for the
/// kernel.
inline uint64_t term_dependencies(const Index& index, const std::vector<uint64_t>& dependencies) {
  uint64_t d = 0;
  for (const auto& [term, scale] : index.terms) d |= dependencies[static_cast<size_t>(term)];
  return d;
}

}  // namespace collet::codegen
