// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/pack_factor.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "sdk/codegen/kernel/loop_sets.h"
#include "sdk/codegen/schedule/grid_tiles.h"
#include "sdk/codegen/schedule/grid_warpgroups.h"
#include "sdk/codegen/schedule/pack_value.h"

namespace collet::codegen {
namespace {

/// Returns whether a factor of `elements` elements is about as large as an array that it is computed from. A factor in
/// which elements of the array are repeated, such as the windows of a convolution, is not.
bool is_dense(const Kernel& kernel, ExprId value, int64_t elements) {
  std::vector<bool> read(kernel.exprs.size(), false);
  read[static_cast<size_t>(value)] = true;
  int64_t most = 0;
  for (size_t k = static_cast<size_t>(value) + 1; k-- > 0;) {
    if (!read[k]) continue;
    const Expr& e = kernel.exprs[k];
    for (const ExprId arg : e.args) read[static_cast<size_t>(arg)] = true;
    if (e.mask != kNoExpr) read[static_cast<size_t>(e.mask)] = true;
    if (e.op != ExprOp::kLoad || !e.index.terms.empty()) continue;
    int64_t span = 1;
    for (size_t l = 0; l < kernel.loops.size(); ++l)
      span += std::abs(e.index.coefficient(l)) * (kernel.loops[l].size - 1);
    most = std::max(most, span);
  }
  return most >= elements;
}

}  // namespace

bool pack_factor(KernelPlan& plan, const GridLimits& limits, const MakeValue& make, KernelPlan& pack) {
  // With fewer multiplications of each element, it takes longer to write the factor than warpgroups save.
  constexpr int64_t kLeastReads = 256;
  const Kernel& k = plan.kernel;
  TileSchedule tiles;
  if (!limits.warpgroups || !plan.copies.empty() || !choose_tiles(k, limits, tiles) || tiles.matrix_type == 0)
    return false;
  const auto bytes = static_cast<int64_t>(collet_type_bytes(tiles.matrix_type));
  const std::vector<uint64_t> deps = loop_dependencies(k);
  const TileOperand* chosen = nullptr;
  std::vector<size_t> loops;
  int64_t padding = 0;
  for (const TileOperand* o : {&tiles.b, &tiles.a}) {
    BoxOperand box;
    if (find_boxes(k, *o, tiles.batch, tiles.matrix_type, box)) continue;
    const TileOperand& other = o == &tiles.a ? tiles.b : tiles.a;
    const uint64_t of = deps[static_cast<size_t>(o->value)];
    std::vector<size_t> own;
    for (const uint64_t set : {tiles.batch & of, o->loops, o->depth_loops}) {
      for (size_t l = 0; l < k.loops.size(); ++l) {
        if ((set >> l & 1) != 0) own.push_back(l);
      }
    }
    const int64_t elements = points_of(k, (tiles.batch & of) | o->loops | o->depth_loops);
    int64_t rest = o->depth * bytes % BoxOperand::kStrideBytes;
    if (rest != 0) rest = (BoxOperand::kStrideBytes - rest) / bytes;
    const bool has_one_depth = (o->depth_loops & (o->depth_loops - 1)) == 0;
    if (other.count < kLeastReads || (rest != 0 && !has_one_depth) || !is_dense(k, o->value, elements)) return false;
    chosen = o;
    loops = own;
    padding = rest;
  }
  if (!chosen) return false;
  pack_value(plan, chosen->value, loops, padding, make, pack);
  return true;
}

}  // namespace collet::codegen
