// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/grid_warpgroups.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "sdk/codegen/kernel/loop_sets.h"

namespace collet::codegen {
namespace {

constexpr size_t kMostDimensions = 5;
constexpr int64_t kMostSize = int64_t{1} << 32;    ///< sizes of copied arrays are smaller
constexpr int64_t kMostStride = int64_t{1} << 40;  ///< strides in bytes are smaller
constexpr int kMostRounds = 6;

/// A set of loops that walks an array as one loop would.
struct Walk {
  int64_t size = 1;
  int64_t stride = 0;  ///< in elements
};

/// Returns how the loops in a set walk an array; nullopt if one loop could not walk it in the same order.
std::optional<Walk> walk_of(const Kernel& kernel, const Index& index, uint64_t loops) {
  Walk out;
  for (size_t l = kernel.loops.size(); l-- > 0;) {
    if ((loops >> l & 1) == 0 || kernel.loops[l].size == 1) continue;
    const int64_t step = index.coefficient(l);
    if (out.size == 1) {
      out.stride = step;
    } else if (step != out.stride * out.size) {
      return std::nullopt;
    }
    out.size *= kernel.loops[l].size;
  }
  return out;
}

int64_t round_of(uint32_t type) {
  return WarpgroupSchedule::kLineBytes / static_cast<int64_t>(collet_type_bytes(type));
}

/// The size of a tile, and how long the product takes with it, in cycles.
struct Shape {
  int rows = 0;
  int columns = 0;
  double time = 0;
};

/// Returns the fastest tiles for a product whose loops are set.
Shape choose_shape(TileSchedule t, int64_t round, const GridLimits& limits) {
  // The time of a tile: the matrix instructions take `columns` / 2 for 32 bytes of the depth of each
  // warpgroup; a processor reads kReadBytes a cycle from the second-level cache; the rest is the epilogue.
  constexpr Shape kShapes[] = {{128, 256}, {128, 192}, {128, 128}, {128, 64}, {64, 128}, {64, 64}};
  constexpr double kReadBytes = 56;
  constexpr double kEpilogue = 1500;
  constexpr double kPerResult = 0.08;
  const double rounds = std::ceil(static_cast<double>(t.depth) / static_cast<double>(round));
  Shape out;
  for (Shape s : kShapes) {
    t.shape.rows = s.rows;
    t.shape.columns = s.columns;
    const double multiply = 4.0 * s.columns / 2 * (s.rows / WarpgroupSchedule::kGroupRows);
    const double read = static_cast<double>((s.rows + s.columns) * WarpgroupSchedule::kLineBytes) / kReadBytes;
    const double tile = rounds * std::max(multiply, read) + kEpilogue + kPerResult * s.rows * s.columns;
    s.time = static_cast<double>((t.tiles() + limits.processors - 1) / limits.processors) * tile;
    if (out.time == 0 || s.time < out.time) out = s;
  }
  return out;
}

}  // namespace

bool find_boxes(const Kernel& kernel, const TileOperand& of, uint64_t batch, uint32_t type, BoxOperand& out) {
  const Expr& e = kernel.exprs[static_cast<size_t>(of.value)];
  if (e.op != ExprOp::kLoad || e.type != type || e.mask != kNoExpr || !e.index.terms.empty()) return false;
  const auto bytes = static_cast<int64_t>(collet_type_bytes(type));
  const std::optional<Walk> depth = walk_of(kernel, e.index, of.depth_loops);
  const std::optional<Walk> own = walk_of(kernel, e.index, of.loops);
  if (!depth || !own) return false;
  out.by_depth = depth->stride == 1;
  const Walk& inner = out.by_depth ? *depth : *own;
  const Walk& outer = out.by_depth ? *own : *depth;
  if (inner.stride != 1 || (!out.by_depth && bytes != 2)) return false;
  out.map.place = e.buffer;
  out.map.element_type = type;
  out.map.offset = e.index.constant * bytes;
  out.map.sizes = {inner.size, outer.size};
  out.map.strides = {outer.stride * bytes};
  out.batch_loops.clear();
  for (size_t l = kernel.outer; l-- > 0;) {
    if ((batch >> l & 1) == 0 || e.index.coefficient(l) == 0 || kernel.loops[l].size == 1) continue;
    out.batch_loops.push_back(l);
    out.map.sizes.push_back(kernel.loops[l].size);
    out.map.strides.push_back(e.index.coefficient(l) * bytes);
  }
  if (out.map.sizes.size() > kMostDimensions || out.map.offset < 0 || out.map.offset % BoxOperand::kStrideBytes != 0)
    return false;
  // A dimension of one element has no stride of its own, but the device wants one.
  if (outer.size == 1 && out.map.strides[0] == 0) out.map.strides[0] = (inner.size * bytes + 15) / 16 * 16;
  return std::all_of(out.map.sizes.begin(), out.map.sizes.end(), [](int64_t n) { return n < kMostSize; }) &&
         std::all_of(out.map.strides.begin(), out.map.strides.end(),
                     [](int64_t n) { return n > 0 && n % BoxOperand::kStrideBytes == 0 && n < kMostStride; });
}

void set_box(BoxOperand& o, int64_t length, int64_t steps) {
  o.map.box.assign(o.map.sizes.size(), 1);
  o.map.box[0] = WarpgroupSchedule::kLineBytes / static_cast<int64_t>(collet_type_bytes(o.map.element_type));
  o.map.box[1] = o.by_depth ? length : steps;
}

std::optional<size_t> contiguous_loop(const Kernel& kernel) {
  std::optional<size_t> out;
  for (const Store& s : kernel.stores) {
    for (size_t l = 0; l < kernel.outer; ++l) {
      if (s.index.coefficient(l) != 1 || kernel.loops[l].size == 1) continue;
      if (out && *out != l) return std::nullopt;
      out = l;
    }
  }
  return out;
}

int lanes_along(const Kernel& kernel, size_t along, int most) {
  const std::vector<uint64_t> deps = loop_dependencies(kernel);
  const uint64_t inner = inner_loops(kernel);
  int64_t common = most;
  const auto divide = [&](int64_t x) {
    while (x % common != 0) common /= 2;
  };
  divide(kernel.loops[along].size);
  const auto align = [&](const Index& index) {
    const int64_t step = index.coefficient(along);
    if (step == 0) return index.terms.empty() || (term_dependencies(index, deps) >> along & 1) == 0;
    if (step != 1 || !index.terms.empty()) return false;
    divide(index.constant);
    for (size_t l = 0; l < kernel.loops.size(); ++l) {
      if (l != along) divide(index.coefficient(l));
    }
    return true;
  };
  for (size_t k = 0; k < kernel.exprs.size(); ++k) {
    const Expr& e = kernel.exprs[k];
    if ((deps[k] & inner) != 0) continue;
    const bool suits = e.op == ExprOp::kConstant || e.op == ExprOp::kLoad || e.op == ExprOp::kIndex ||
                       e.op == ExprOp::kReduced || (e.op == ExprOp::kOp && e.opcode != COLLET_OP_REMAINDER);
    if (!suits || e.mask != kNoExpr || collet_type_kind(e.type) == COLLET_KIND_COMPLEX) return 1;
    if (e.op == ExprOp::kLoad && !align(e.index)) return 1;
  }
  for (const Store& s : kernel.stores) {
    if (s.mask != kNoExpr || s.index.coefficient(along) != 1 || !align(s.index)) return 1;
  }
  return static_cast<int>(common);
}

bool choose_warpgroups(const Kernel& kernel, const GridLimits& limits, TileSchedule& tiles, WarpgroupSchedule& out) {
  if (!limits.warpgroups || tiles.matrix_type == 0) return false;
  WarpgroupSchedule w;
  w.matrix_type = tiles.matrix_type;
  w.round = static_cast<int>(round_of(w.matrix_type));
  TileSchedule t = tiles;
  // Results that are contiguous along the rows are those of the transposed product.
  const std::optional<size_t> contiguous = contiguous_loop(kernel);
  if (contiguous && (t.a.loops >> *contiguous & 1) != 0) std::swap(t.a, t.b);
  if (!find_boxes(kernel, t.a, t.batch, w.matrix_type, w.a) || !find_boxes(kernel, t.b, t.batch, w.matrix_type, w.b))
    return false;
  constexpr int kLanes = 4;  // of 32-bit sums: an access of 16 bytes to shared memory
  const bool along_columns = contiguous && static_cast<size_t>(std::bit_width(t.b.loops)) == *contiguous + 1;
  w.lanes = along_columns ? lanes_along(kernel, *contiguous, kLanes) : 1;

  const Shape chosen = choose_shape(t, w.round, limits);
  w.rows = t.shape.rows = chosen.rows;
  w.columns = t.shape.columns = chosen.columns;
  w.rounds = 2;
  while (w.rounds <= kMostRounds && w.shared_bytes() <= limits.block_shared_bytes) ++w.rounds;
  if (--w.rounds < 2) return false;
  set_box(w.a, w.rows, w.round);
  set_box(w.b, w.columns, w.round);
  // Tiles that are computed at the same time form a square, nearly, so that they read few rows and columns.
  const double side = std::sqrt(static_cast<double>(limits.processors) * w.columns / w.rows);
  w.row_group = std::clamp<int64_t>(std::lround(side), 1, t.row_tiles());
  t.round = w.round;
  t.rounds = w.rounds;
  t.a.is_copied = t.b.is_copied = true;
  tiles = t;
  out = std::move(w);
  return true;
}

std::optional<int64_t> depth_parts(const Kernel& kernel, const GridLimits& limits, const TileSchedule& tiles) {
  constexpr int64_t kMostParts = 16;
  constexpr double kMemoryBytes = 13;  // that a processor reads or writes in a cycle
  constexpr double kLaunch = 4000;     // cycles of the kernel that adds the parts
  if (!limits.warpgroups || tiles.matrix_type == 0) return std::nullopt;
  TileSchedule t = tiles;
  BoxOperand box;
  const auto bytes = static_cast<int64_t>(collet_type_bytes(t.matrix_type));
  for (const TileOperand* o : {&t.a, &t.b}) {
    if (!find_boxes(kernel, *o, t.batch, t.matrix_type, box)) return std::nullopt;
  }
  const int64_t round = round_of(t.matrix_type);
  const double results =
      static_cast<double>(tiles.a.count) * static_cast<double>(tiles.b.count) * static_cast<double>(tiles.batch_count);
  double best = choose_shape(tiles, round, limits).time;
  int64_t out = 1;
  for (int64_t parts = 2; parts <= kMostParts; ++parts) {
    if (!divides_inner_loop(kernel, parts) || tiles.depth / parts * bytes % BoxOperand::kStrideBytes != 0) continue;
    t.depth = tiles.depth / parts;
    t.batch_count = tiles.batch_count * parts;
    // Partial results are written and read, as f32.
    const double traffic = static_cast<double>(parts) * results * 8 / (kMemoryBytes * limits.processors);
    const double time = choose_shape(t, round, limits).time + traffic + kLaunch;
    if (time >= best) continue;
    best = time;
    out = parts;
  }
  return out;
}

}  // namespace collet::codegen
