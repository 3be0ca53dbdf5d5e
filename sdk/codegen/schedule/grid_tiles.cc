// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/grid_tiles.h"

#include <collet/codegen/kernel_contraction.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/kernel/loop_sets.h"

namespace collet::codegen {
namespace {

constexpr int kPieceBytes = 16;  ///< bytes that one instruction copies to shared memory
/// Bytes after each line in shared memory, so that its columns are in different banks.
constexpr int kPaddingBytes = 16;
constexpr int kMostRounds = 4;  ///< most rounds in shared memory at a time: enough to hide the latency of memory

// Products of 128 x 128 read each operand half as often as those of 64 x 64, but take four times as much work to fill the machine.
constexpr TileShape kLargeMatrices{128, 128, 64, 32};
constexpr TileShape kSmallMatrices{64, 64, 32, 32};
constexpr TileShape kLargePlain{128, 128, 8, 8};
constexpr TileShape kSmallPlain{64, 64, 4, 4};
constexpr int kMatrixRoundBytes = 64;  ///< bytes of a row or column in each round: two matrix instructions
constexpr int kPlainRound = 16;        ///< steps of the depth in a round without matrix instructions

/// Returns the number of the last loop in a set.
size_t last_loop(uint64_t loops) {
  return static_cast<size_t>(std::bit_width(loops)) - 1;
}

/// Finds the loops that are rows, columns and depth.
bool find_product(const Kernel& kernel, TileSchedule& out) {
  constexpr int64_t kLeastDepth = 8;
  const std::optional<Contraction> found = find_contraction(kernel);
  if (!found || found->a == found->b) return false;
  const uint32_t kind = collet_type_kind(found->type());
  const bool is_number = kind == COLLET_KIND_FLOAT || kind == COLLET_KIND_SIGNED || kind == COLLET_KIND_UNSIGNED;
  if (!is_number || compute_bytes(found->type()) < 4 || is_narrow_float(found->type())) return false;
  const std::vector<uint64_t> deps = loop_dependencies(kernel);
  for (const Store& s : kernel.stores) {
    uint64_t d = deps[static_cast<size_t>(s.value)] | term_dependencies(s.index, deps);
    if (s.mask != kNoExpr) d |= deps[static_cast<size_t>(s.mask)];
    for (size_t l = kernel.outer; l < kernel.loops.size(); ++l) {
      if ((d >> l & 1) != 0 || s.index.coefficient(l) != 0) return false;
    }
  }
  out.a.value = found->a;
  out.b.value = found->b;
  out.a.loops = found->rows;
  out.b.loops = found->columns;
  out.batch = found->batch;
  out.batch_count = points_of(kernel, out.batch);
  out.depth = inner_points(kernel);
  for (TileOperand* o : {&out.a, &out.b}) {
    o->count = points_of(kernel, o->loops);
    o->depth_loops = found->depth;
    o->depth = out.depth;
    find_direction(kernel, *o);
  }
  return out.depth >= kLeastDepth;
}

}  // namespace

uint32_t matrix_type_of(uint32_t type, uint32_t sum_type, bool rounds_to_tf32) {
  const bool is_half = type == COLLET_TYPE_BF16 || type == COLLET_TYPE_F16;
  const bool is_byte = type == COLLET_TYPE_S8 || type == COLLET_TYPE_U8;
  if (sum_type == COLLET_TYPE_F32) return is_half || (type == COLLET_TYPE_F32 && rounds_to_tf32) ? type : 0;
  return sum_type == COLLET_TYPE_S32 && is_byte ? type : 0;
}

bool is_copied(const Kernel& kernel, const TileOperand& o, const TileStorage& storage, uint32_t stored_type) {
  const Expr& e = kernel.exprs[static_cast<size_t>(o.value)];
  if (e.op != ExprOp::kLoad || e.type != stored_type || e.mask != kNoExpr || !e.index.terms.empty()) return false;
  if (o.by_depth == storage.lines_of_depth || (!o.by_depth && o.loops == 0)) return false;
  const size_t along = last_loop(o.by_depth ? o.depth_loops : o.loops);
  const int64_t piece = kPieceBytes / storage.element_bytes;
  if (e.index.coefficient(along) != 1 || kernel.loops[along].size % piece != 0 || e.index.constant % piece != 0)
    return false;
  for (size_t l = 0; l < kernel.loops.size(); ++l) {
    if (l != along && e.index.coefficient(l) % piece != 0) return false;
  }
  return true;
}

void find_direction(const Kernel& kernel, TileOperand& o) {
  const size_t last = last_loop(o.depth_loops);
  std::vector<bool> read(kernel.exprs.size(), false);
  read[static_cast<size_t>(o.value)] = true;
  o.by_depth = false;
  for (size_t k = static_cast<size_t>(o.value) + 1; k-- > 0;) {
    if (!read[k]) continue;
    const Expr& expr = kernel.exprs[k];
    // True if neighbours along the depth are adjacent in memory.
    if (expr.op == ExprOp::kLoad && expr.index.coefficient(last) == 1) o.by_depth = true;
    for (ExprId arg : expr.args) read[static_cast<size_t>(arg)] = true;
  }
}

TileStorage tile_storage(uint32_t matrix_type, uint32_t sum_type, bool by_depth, int length, int steps) {
  TileStorage out;
  const bool by_matrix = matrix_type != 0;
  out.element_bytes = by_matrix ? static_cast<int>(collet_type_bytes(matrix_type)) : compute_bytes(sum_type);
  // Matrix instructions read pairs of elements along the depth. Only for 16-bit elements can ldmatrix combine pairs
  // from two lines.
  out.lines_of_depth = !by_matrix || (out.element_bytes == 2 && !by_depth);
  out.lines = out.lines_of_depth ? steps : length;
  out.pitch = (out.lines_of_depth ? length : steps) + kPaddingBytes / out.element_bytes;
  return out;
}

bool choose_tiles(const Kernel& kernel, const GridLimits& limits, TileSchedule& out) {
  if (!find_product(kernel, out)) return false;
  const uint32_t sum_type = kernel.reductions[0].types[0];
  ExprId a = before_conversion(kernel, out.a.value, sum_type);
  ExprId b = before_conversion(kernel, out.b.value, sum_type);
  if (kernel.exprs[static_cast<size_t>(a)].type != kernel.exprs[static_cast<size_t>(b)].type) {
    a = out.a.value;
    b = out.b.value;
  }
  if (!limits.neutral)
    out.matrix_type = matrix_type_of(kernel.exprs[static_cast<size_t>(a)].type, sum_type, kernel.reductions[0].tf32);
  // With fewer rows or columns, most of a tile is empty. Matrix instructions take so little time that this matters less
  // than to read the other factor once.
  const int64_t least = out.matrix_type != 0 ? 4 : 16;
  if (out.a.count < least || out.b.count < least) return false;
  if (out.matrix_type != 0) {
    out.a.value = a;
    out.b.value = b;
  }
  const uint32_t stored_type = out.matrix_type != 0 ? out.matrix_type : sum_type;
  const int matrix_bytes = out.matrix_type != 0 ? static_cast<int>(collet_type_bytes(out.matrix_type)) : 0;
  out.round = out.matrix_type != 0 ? kMatrixRoundBytes / matrix_bytes : kPlainRound;

  const auto storage = [&](const TileOperand& o, int length) {
    return tile_storage(out.matrix_type, sum_type, o.by_depth, length, out.round);
  };
  const auto take = [&](const TileShape& shape) {
    out.shape = shape;
    return 2 * out.round_bytes(sum_type) <= limits.shared_bytes &&
           shape.threads(out.matrix_type) <= limits.block_threads;
  };
  const bool is_wide = compute_bytes(sum_type) > 4;  // large tiles would take too many registers
  const bool is_large =
      !is_wide && take(out.matrix_type != 0 ? kLargeMatrices : kLargePlain) && out.tiles() >= limits.processors;
  if (!is_large && !take(out.matrix_type != 0 ? kSmallMatrices : kSmallPlain)) return false;
  out.a.is_copied = is_copied(kernel, out.a, storage(out.a, out.shape.rows), stored_type);
  out.b.is_copied = is_copied(kernel, out.b, storage(out.b, out.shape.columns), stored_type);
  const bool all_copied = out.a.is_copied && out.b.is_copied;
  // Elements that are computed and not copied are kept in registers for a while, each in its own.
  if (!all_copied && matrix_bytes == 1) out.round /= 2;
  const auto fitting = static_cast<uint64_t>(limits.shared_bytes / out.round_bytes(sum_type));
  if (all_copied) out.rounds = std::min(static_cast<int>(std::bit_floor(fitting)), kMostRounds);
  return true;
}

}  // namespace collet::codegen
