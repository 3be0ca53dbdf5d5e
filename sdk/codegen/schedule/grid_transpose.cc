// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/grid_transpose.h"

#include <cstdint>
#include <cstdlib>

#include "sdk/codegen/kernel/loop_sets.h"

namespace collet::codegen {
namespace {

constexpr int kLargestElement = 16;

int64_t in_tiles(int64_t points) {
  return (points + TransposeSchedule::kSide - 1) / TransposeSchedule::kSide;
}

/// True if neighbours along loop `across` are adjacent in memory and neighbours along the last loop are far apart.
bool is_transposed_load(const Kernel& kernel, const Expr& e, size_t across) {
  constexpr int64_t kFar = 8;  ///< elements between neighbours that count as far apart
  return e.op == ExprOp::kLoad && e.mask == kNoExpr && e.index.terms.empty() && e.index.coefficient(across) == 1 &&
         std::abs(e.index.coefficient(kernel.outer - 1)) >= kFar;
}

}  // namespace

bool choose_transpose(const Kernel& kernel, const GridLimits& limits, TransposeSchedule& out) {
  /// Least size of the loops: with fewer points, most threads would be idle.
  constexpr int64_t kLeast = TransposeSchedule::kSide / 2;
  if (!kernel.reductions.empty() || kernel.scan || kernel.sequential || !kernel.updates.empty() || kernel.outer < 2 ||
      kernel.outer != kernel.loops.size() || limits.warp != TransposeSchedule::kSide)
    return false;
  const size_t last = kernel.outer - 1;
  if (kernel.loops[last].size < kLeast) return false;
  for (const Store& s : kernel.stores) {
    if (std::abs(s.index.coefficient(last)) != 1) return false;
  }
  for (size_t across = last; across-- > 0;) {
    if (kernel.loops[across].size < kLeast) continue;
    out.across = static_cast<uint32_t>(across);
    out.transposed.clear();
    for (size_t k = 0; k < kernel.exprs.size(); ++k) {
      if (is_transposed_load(kernel, kernel.exprs[k], across)) out.transposed.push_back(static_cast<ExprId>(k));
    }
    const int64_t tile = int64_t{TransposeSchedule::kSide} * (TransposeSchedule::kSide + 1) * kLargestElement;
    if (!out.transposed.empty() && static_cast<int64_t>(out.transposed.size()) * tile <= limits.shared_bytes)
      return true;
  }
  out = {};
  return false;
}

int64_t count_tiles(const Kernel& kernel, const TransposeSchedule& transpose) {
  const size_t last = kernel.outer - 1;
  const uint64_t others = outer_loops(kernel) & ~(uint64_t{1} << last) & ~(uint64_t{1} << transpose.across);
  return points_of(kernel, others) * in_tiles(kernel.loops[last].size) * in_tiles(kernel.loops[transpose.across].size);
}

}  // namespace collet::codegen
