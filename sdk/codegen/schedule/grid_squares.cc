// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/grid_squares.h"

#include <cstdint>
#include <cstdlib>

#include "sdk/codegen/schedule/grid_loops.h"

namespace collet::codegen {
namespace {

constexpr int kLargestElement = 16;

int64_t in_squares(int64_t points) {
  return (points + SquareSchedule::kSide - 1) / SquareSchedule::kSide;
}

/// True if neighbours along loop `across` are adjacent in memory and neighbours along the last loop are far apart.
bool is_turned(const Kernel& kernel, const Expr& e, size_t across) {
  constexpr int64_t kFar = 8;  ///< elements between neighbours that count as far apart
  return e.op == ExprOp::kLoad && e.mask == kNoExpr && e.index.terms.empty() && e.index.coefficient(across) == 1 &&
         std::abs(e.index.coefficient(kernel.outer - 1)) >= kFar;
}

}  // namespace

bool choose_squares(const Kernel& kernel, const GridLimits& limits, SquareSchedule& out) {
  /// Least size of the loops: with fewer points, most threads would be idle.
  constexpr int64_t kLeast = SquareSchedule::kSide / 2;
  if (!kernel.reductions.empty() || kernel.scan || kernel.sequential || !kernel.updates.empty() || kernel.outer < 2 ||
      kernel.outer != kernel.loops.size() || limits.warp != SquareSchedule::kSide)
    return false;
  const size_t last = kernel.outer - 1;
  if (kernel.loops[last].size < kLeast) return false;
  for (const Store& s : kernel.stores) {
    if (std::abs(s.index.coefficient(last)) != 1) return false;
  }
  for (size_t across = last; across-- > 0;) {
    if (kernel.loops[across].size < kLeast) continue;
    out.across = static_cast<uint32_t>(across);
    out.turned.clear();
    for (size_t k = 0; k < kernel.exprs.size(); ++k) {
      if (is_turned(kernel, kernel.exprs[k], across)) out.turned.push_back(static_cast<ExprId>(k));
    }
    const int64_t square = int64_t{SquareSchedule::kSide} * (SquareSchedule::kSide + 1) * kLargestElement;
    if (!out.turned.empty() && static_cast<int64_t>(out.turned.size()) * square <= limits.shared_bytes) return true;
  }
  out = {};
  return false;
}

int64_t count_squares(const Kernel& kernel, const SquareSchedule& squares) {
  const size_t last = kernel.outer - 1;
  const uint64_t others = outer_loops(kernel) & ~(uint64_t{1} << last) & ~(uint64_t{1} << squares.across);
  return points_of(kernel, others) * in_squares(kernel.loops[last].size) *
         in_squares(kernel.loops[squares.across].size);
}

}  // namespace collet::codegen
