// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/lanes.h"

#include <collet/codegen/kernel_transform.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/kernel/legality.h"
#include "sdk/codegen/kernel/passes.h"

namespace collet::codegen {
namespace {

/// Returns how well loop `loop` suits as the vectorised one: unit strides raise the score, gathers lower it. Loads
/// within the inner loops count several times, since they are made at each point of a row. `deps`: see
/// loop_dependencies.
int64_t lane_score(const Kernel& kernel, const std::vector<uint64_t>& deps, size_t loop, const Target& target) {
  int64_t score = 0;
  // Along an inner loop that is too short to fill a vector, whose elements are then computed one by one, a unit stride gains nothing.
  const bool fills = loop < kernel.outer || kernel.loops[loop].size >= target.vector_bits / 32;
  auto access = [&](const Index& index, int64_t weight) {
    int64_t c = index.coefficient(loop);
    if (c == 1 && !fills) c = 0;
    score += c == 0 ? 1 : c == 1 ? 3 * weight : c == -1 ? 2 : -4 * weight;
  };
  const int64_t times =
      kernel.reductions.empty() ? 1 : std::clamp<int64_t>(inner_points(kernel), 1, target.tuning.inner_weight);
  for (size_t k = 0; k < kernel.exprs.size(); ++k) {
    if (kernel.exprs[k].op != ExprOp::kLoad) continue;
    const int64_t before = std::exchange(score, 0);
    access(kernel.exprs[k].index, 1);
    score = before + score * (deps[k] >> kernel.outer != 0 ? times : 1);
  }
  for (const Store& s : kernel.stores) access(s.index, 2);
  for (const Update& u : kernel.updates) access(u.index, 2);
  score *= 1000;
  return score + std::min<int64_t>(kernel.loops[loop].size, 64) * 20 + static_cast<int64_t>(loop);
}

/// True if all reductions may be split among lanes. Reductions that skip points, such as those of windows, may only be
/// split if the row is long.
bool lanes_may_reduce(const Kernel& kernel, const Target& target) {
  const bool is_long =
      kernel.outer + 1 == kernel.loops.size() && kernel.loops.back().size >= target.tuning.split_condition_row;
  return std::all_of(kernel.reductions.begin(), kernel.reductions.end(), [&](const Reduction& r) {
    return r.combine >= COLLET_COMBINE_ADD && r.combine <= COLLET_COMBINE_XOR && (r.condition == kNoExpr || is_long);
  });
}

/// Returns the outer loop to vectorise if there are many rows that are shorter than a vector; the number of loops if there is none.
/// Each lane then reduces a row of its own, so that no lane is idle and none are combined at the end.
size_t rows_as_lanes(const Kernel& kernel, size_t first, int lanes, const Target& target) {
  const size_t none = kernel.loops.size();
  if (kernel.reductions.empty() || kernel.outer == none || kernel.sequential || !kernel.updates.empty()) return none;
  const bool plain = std::all_of(kernel.reductions.begin(), kernel.reductions.end(), [](const Reduction& r) {
    return r.combine != COLLET_COMBINE_OTHER && r.condition == kNoExpr;
  });
  const int64_t points = inner_points(kernel);
  if (!plain || points * static_cast<int64_t>(kernel.exprs.size()) > target.tuning.straight_exprs) return none;
  const int64_t row = kernel.loops.back().size;
  if (row > lanes) return none;
  const auto is_near = [&](size_t l) {
    return std::all_of(kernel.exprs.begin(), kernel.exprs.end(), [&](const Expr& e) {
      return e.op != ExprOp::kLoad ||
             (e.index.terms.empty() && std::abs(e.index.coefficient(l)) <= target.tuning.near_stride);
    });
  };
  const auto ops =
      std::count_if(kernel.exprs.begin(), kernel.exprs.end(), [](const Expr& i) { return i.op == ExprOp::kOp; });
  // If the loads are gathers, a short computation is not worth it.
  const bool gathers = points * 4 <= lanes * 3 && (points * 2 <= lanes || kernel.reductions.size() >= 2 || ops >= 8);
  size_t best = none;
  std::pair<bool, int64_t> best_rank;
  for (size_t l = first; l < kernel.outer; ++l) {
    // Fewer rows than one vector has lanes fill them badly, but better than very short rows do.
    const bool fills = kernel.loops[l].size >= lanes / 2 && kernel.loops[l].size >= 3 * row;
    if (kernel.loops[l].size < lanes && !fills) continue;
    const bool near = is_near(l);
    if (!gathers && !(near && row * 2 <= lanes)) continue;
    const auto rank = std::make_pair(near, kernel.loops[l].size);
    if (rank >= best_rank) {
      best = l;
      best_rank = rank;
    }
  }
  return best;
}

/// Widens the lanes to several vectors per iteration, which hides the latency of the additions. If the vectorised loop is an inner
/// one, each pass chooses its own width.
void widen_reduction(Kernel& kernel, const std::vector<uint64_t>& deps, const Target& target) {
  int work = 0;
  for (size_t k = 0; k < kernel.exprs.size(); ++k) {
    const Expr& i = kernel.exprs[k];
    if ((deps[k] >> kernel.lane_loop & 1) == 0) continue;
    if (i.op == ExprOp::kLoad) work += 1;
    if (i.op == ExprOp::kOp) work += i.opcode == COLLET_OP_ADD || i.opcode == COLLET_OP_MULTIPLY ? 1 : 3;
  }
  // Short inner loops are unrolled, which gives enough independent additions already.
  if (inner_points(kernel) <= 32 &&
      inner_points(kernel) * static_cast<int64_t>(kernel.exprs.size()) <= target.tuning.straight_exprs) {
    return;
  }
  const int64_t size = kernel.loops[kernel.lane_loop].size;
  const bool one_type = kernel.reductions.size() == 1 && kernel.reductions[0].combine != COLLET_COMBINE_OTHER;
  if (!one_type) return;
  for (int times = 4; times >= 2; times /= 2) {
    if (work * times <= 32 && size >= static_cast<int64_t>(kernel.lanes) * times * 2) {
      kernel.lanes *= times;
      return;
    }
  }
}

/// Chooses the loop to vectorise of a scan: contiguous columns if there are any; else the scanned row itself, if its combination
/// can be computed across lanes, and is long enough for it; else rows.
size_t scan_lane_loop(const Kernel& kernel, size_t first, int lanes, const Target& target) {
  const size_t none = kernel.loops.size();
  auto contiguous = [&](size_t l) {
    return std::all_of(kernel.stores.begin(), kernel.stores.end(),
                       [&](const Store& s) { return s.index.coefficient(l) == 1; });
  };
  size_t best = none;
  for (size_t l = first; l < kernel.outer; ++l) {
    if (kernel.loops[l].size < 2) continue;
    if (contiguous(l)) return l;
    if (kernel.loops[l].size >= lanes && (best == none || kernel.loops[l].size > kernel.loops[best].size)) best = l;
  }
  const bool is_short = best != none && kernel.loops[kernel.outer].size <= target.tuning.short_scan;
  if (kernel.scan->reduction.combine != COLLET_COMBINE_OTHER && contiguous(kernel.outer) && !is_short)
    return kernel.outer;
  return best;
}

/// Returns the bytes of the widest element that is computed with along a loop.
int widest(const Kernel& kernel, const std::vector<uint64_t>& deps, size_t loop) {
  int bytes = 1;
  for (size_t k = 0; k < kernel.exprs.size(); ++k) {
    if (!(deps[k] >> loop & 1)) continue;
    const Expr& i = kernel.exprs[k];
    bool index = i.op == ExprOp::kIndex || i.op == ExprOp::kDivide || i.op == ExprOp::kModulo || i.op == ExprOp::kStart;
    bytes = std::max(bytes, index ? 4 : compute_bytes(i.type));
    if (i.op == ExprOp::kOp && i.opcode == COLLET_OP_CONVERT) bytes = std::max(bytes, 4);
  }
  for (const Reduction& r : kernel.reductions) {
    for (uint32_t t : r.types) bytes = std::max(bytes, compute_bytes(t));
  }
  return bytes;
}

/// Returns how many elements of so many bytes a vector has. A machine whose registers have one f32 has no vectors.
int lanes_in_vector(const Target& target, int bytes) {
  return target.vector_bits <= 32 ? 1 : std::max(1, target.vector_bits / (8 * std::max(bytes, 2)));
}

void choose_scan_lanes(Kernel& kernel, const Target& target, size_t first) {
  const auto deps = loop_dependencies(kernel);
  auto lanes_of = [&](size_t loop) { return lanes_in_vector(target, widest(kernel, deps, loop)); };
  kernel.lane_loop = scan_lane_loop(kernel, first, target.vector_bits / 32, target);
  if (kernel.lane_loop == kernel.loops.size()) return;
  kernel.lanes = lanes_of(kernel.lane_loop);
  if (kernel.lane_loop == kernel.outer || kernel.scan->reduction.combine == COLLET_COMBINE_OTHER) return;
  const bool strided = std::any_of(kernel.stores.begin(), kernel.stores.end(),
                                   [&](const Store& s) { return s.index.coefficient(kernel.lane_loop) != 1; });
  if (strided) return;
  for (int times = 4; times >= 2; times /= 2) {  // a strip of columns is several cache lines wide
    if (kernel.loops[kernel.lane_loop].size < static_cast<int64_t>(kernel.lanes) * times) continue;
    kernel.lanes *= times;
    return;
  }
}

/// Returns the loop from `first` on along which most of the loads that would be gathers have unit stride; the number of
/// loops if there is none.
size_t loop_to_transpose(const Kernel& kernel, size_t first) {
  size_t best = kernel.loops.size();
  if (!is_plain(kernel) || kernel.lanes == 1) return best;
  const auto deps = loop_dependencies(kernel);
  std::ptrdiff_t most = 0;
  for (size_t l = first; l < kernel.outer; ++l) {
    if (l == kernel.lane_loop) continue;
    std::ptrdiff_t count = 0;
    for (size_t k = 0; k < kernel.exprs.size(); ++k) count += is_transposed(kernel, deps, k, l) ? 1 : 0;
    if (count > most) {
      most = count;
      best = l;
    }
  }
  return best;
}

/// Returns the lanes of squares. For few columns, smaller squares waste fewer lanes.
int lanes_of_squares(const Kernel& kernel) {
  int lanes = kernel.lanes;
  while (lanes > 4 && kernel.loops[kernel.lane_loop].size * 2 <= lanes) lanes /= 2;
  return lanes;
}

/// Moves the loop to the end along which most of the loads that would be gathers have unit stride, if there is one. As
/// many iterations of it as there are lanes form a square. Squares whose results are adjacent in memory are computed
/// one after the other, because results that are a power of two apart would evict each other from the caches. The first
/// loop must have enough iterations for threads to share.
void transpose_lanes(Kernel& kernel, size_t first, const Target& target) {
  const size_t none = kernel.loops.size();
  size_t best = loop_to_transpose(kernel, first);
  if (best == none) return;
  kernel.lanes = lanes_of_squares(kernel);
  size_t squares = none + 1;
  if (kernel.loops[best].size > kernel.lanes && kernel.loops[best].size % kernel.lanes == 0) {
    squares = best;
    split_loop(kernel, best, kernel.lanes);
    if (kernel.lane_loop > best) ++kernel.lane_loop;
    ++best;
  }
  std::vector<std::vector<size_t>> order;
  for (size_t l = 0; l < kernel.outer; ++l) {
    if (l != kernel.lane_loop && l != best && l != squares) order.push_back({l});
  }
  const bool few = first == order.size() || kernel.loops[order[first][0]].size < target.tuning.threads_turns;
  const size_t lead = few ? first : order.size();
  if (squares < none) {
    order.insert(order.begin() + static_cast<int64_t>(lead), {squares});
    order.push_back({kernel.lane_loop});
    kernel.lane_loop = order.size() - 1;
  } else {
    order.insert(order.begin() + static_cast<int64_t>(lead), {kernel.lane_loop});
    kernel.lane_loop = lead;
  }
  order.push_back({best});
  regroup_loops(kernel, order);
}

/// Removes lanes that a plain kernel never uses. An access whose mask is false in most lanes still takes as long as one
/// of all lanes if these extend beyond a cache line.
void narrow_short_rows(Kernel& kernel, const Target& target) {
  if (!is_plain(kernel) || kernel.lanes == 1 || kernel.lane_loop + 1 != kernel.outer) return;
  while (kernel.lanes > target.tuning.least_lanes && kernel.loops[kernel.lane_loop].size * 2 <= kernel.lanes)
    kernel.lanes /= 2;
}

/// Returns the greatest size of a tile that divides `size`; 1 if there is none.
int64_t tile_of(int64_t size, const Target& target) {
  for (int64_t tile = target.tuning.most_tile; tile >= target.tuning.least_tile; --tile) {
    if (size % tile == 0) return tile;
  }
  return 1;
}

/// Tiles the loops of a kernel that moves short rows, of less than a vector, such as the channels of an image that is
/// rotated. If the rows that it loads one after the other are far apart, it would use but one row of each cache line
/// that it loads. The tiles are along a loop in which loaded rows are near each other. A tile stores to several places
/// at a time, which large arrays do not gain from if a cache holds the lines until the next iteration of that loop.
void tile_short_rows(Kernel& kernel, size_t first, const Target& target) {
  if (!is_plain(kernel) || kernel.sequential || kernel.lanes == 1 || kernel.outer < first + 3) return;
  const size_t lane_loop = kernel.lane_loop;
  if (lane_loop + 1 != kernel.outer || kernel.loops[lane_loop].size >= kernel.lanes) return;
  const size_t along = lane_loop - 1;
  const int64_t rows = kernel.loops[along].size;
  if (rows < target.tuning.tiled_rows) return;
  int64_t points = 1;
  for (const Loop& l : kernel.loops) points *= l.size;
  for (const Expr& e : kernel.exprs) {
    if (e.op != ExprOp::kLoad || !e.index.terms.empty()) continue;
    const auto bytes = [&](size_t l) { return std::abs(e.index.coefficient(l)) * collet_type_bytes(e.type); };
    if (e.index.coefficient(lane_loop) == 0 || bytes(lane_loop) >= target.cache_line ||
        bytes(along) < target.tuning.tiled_distance)
      continue;
    const bool stays = rows < target.tuning.tiled_in_cache && bytes(along) % (target.cache_way / 2) != 0;
    if (stays && points * static_cast<int64_t>(collet_type_bytes(e.type)) > target.tuning.tiled_array) continue;
    for (size_t l = first; l < along; ++l) {
      const int64_t tile = tile_of(kernel.loops[l].size, target);
      if (bytes(l) == 0 || bytes(l) >= target.cache_line || tile == 1 ||
          kernel.loops[l].size / tile < target.tuning.fewest_tiles)
        continue;
      split_loop(kernel, l, tile);
      std::vector<std::vector<size_t>> order;
      for (size_t m = 0; m < kernel.outer; ++m) {
        if (m != l + 1 && m + 1 != kernel.outer) order.push_back({m});
      }
      order.push_back({l + 1});
      order.push_back({kernel.outer - 1});
      regroup_loops(kernel, order);
      kernel.lane_loop = kernel.outer - 1;
      return;
    }
  }
}

}  // namespace

bool bypasses_caches(const Kernel& kernel, const Store& store, const Target& target) {
  const uint32_t type = kernel.exprs[static_cast<size_t>(store.value)].type;
  if (kernel.lanes == 1 || kernel.lane_loop >= kernel.outer || collet_type_kind(type) == COLLET_KIND_COMPLEX)
    return false;
  const auto bytes = static_cast<int64_t>(collet_type_bytes(type));
  if (bytes == 0 || kernel.lanes * bytes % (target.vector_bits / 8) != 0) return false;
  if (kernel.scan || !kernel.updates.empty() || transposing_loop(kernel) < kernel.loops.size()) return false;
  if (store.mask != kNoExpr || !store.index.terms.empty() || store.index.coefficient(kernel.lane_loop) != 1)
    return false;
  if (store.index.constant % kernel.lanes != 0) return false;
  int64_t written = bytes;
  for (size_t l = 0; l < kernel.outer; ++l) {
    const int64_t step = store.index.coefficient(l);
    if (kernel.loops[l].size > 1 && l != kernel.lane_loop && step % kernel.lanes != 0) return false;
    // Each part of a kernel in parts may take the place of the one before, and is read before the next one is written.
    if (step != 0 && !(kernel.in_parts && l == 0)) written *= kernel.loops[l].size;
  }
  // Tests of indices cut loops where vectors are not aligned.
  return written >= target.tuning.far_caches * target.second_cache &&
         std::none_of(kernel.exprs.begin(), kernel.exprs.end(), [&](const Expr& e) {
           return e.op == ExprOp::kInRange || (e.op == ExprOp::kLoad && e.buffer == store.buffer);
         });
}

size_t transposing_loop(const Kernel& kernel) {
  const size_t none = kernel.loops.size();
  if (kernel.lanes == 1 || none < 2 || kernel.lane_loop + 1 >= none || !is_plain(kernel)) return none;
  const auto deps = loop_dependencies(kernel);
  for (size_t k = 0; k < kernel.exprs.size(); ++k) {
    if (is_transposed(kernel, deps, k, none - 1)) return none - 1;
  }
  return none;
}

bool reduces_rows(const Kernel& kernel, const Target& target) {
  if (refusal_of_strips(kernel)) return false;
  return kernel.loops[kernel.lane_loop].size > target.tuning.summed_vectors * kernel.lanes &&
         kernel.loops[kernel.outer].size > target.tuning.summed_rows;
}

namespace {

/// Vectorises the last loop of a kernel whose lanes are updated one after the other, if the loop has two vectors or more.
void choose_lanes_in_order(Kernel& kernel, size_t first, const Target& target) {
  const size_t last = kernel.loops.size() - 1;
  const int lanes = target.vector_bits / 32;
  if (target.has_grid() || !may_update_in_order(kernel) || last < first || kernel.loops[last].size < 2 * lanes) return;
  kernel.lane_loop = last;
  kernel.lanes = lanes;
}

/// Chooses the loop to vectorise and its width, without changing the loops.
void choose_lane_loop(Kernel& kernel, const Target& target, size_t first) {
  kernel.lanes = 1;
  kernel.lane_loop = kernel.loops.size();
  if (kernel.scan) return choose_scan_lanes(kernel, target, first);
  size_t last = kernel.loops.size();
  if (!kernel.reductions.empty() && !lanes_may_reduce(kernel, target)) last = kernel.outer;
  if (kernel.sequential) {
    // Lanes that are updated together must not update the same element.
    const auto deps = loop_dependencies(kernel);
    for (size_t l = first; l < last; ++l) {
      bool unit = !kernel.updates.empty() || !kernel.stores.empty();
      for (const Update& u : kernel.updates) unit = unit && updates_neighbours(u, l, deps);
      for (const Store& s : kernel.stores) unit = unit && s.index.coefficient(l) == 1;
      if (unit) kernel.lane_loop = l;
    }
    if (kernel.lane_loop == kernel.loops.size()) return choose_lanes_in_order(kernel, first, target);
  } else {
    int64_t best = INT64_MIN;
    const auto deps = loop_dependencies(kernel);
    for (size_t l = first; l < last; ++l) {
      if (kernel.loops[l].size < 2) continue;
      int64_t score = lane_score(kernel, deps, l, target);
      if (score > best) {
        best = score;
        kernel.lane_loop = l;
      }
    }
    if (best == INT64_MIN) return;
  }
  if (kernel.lane_loop >= kernel.outer) {
    const size_t rows = rows_as_lanes(kernel, first, target.vector_bits / 32, target);
    if (rows < kernel.loops.size()) kernel.lane_loop = rows;
  }
  auto deps = loop_dependencies(kernel);
  const int bytes = widest(kernel, deps, kernel.lane_loop);
  kernel.lanes = lanes_in_vector(target, bytes);
  if (!kernel.reductions.empty() && kernel.lane_loop < kernel.outer && !reduces_rows(kernel, target)) {
    widen_reduction(kernel, deps, target);
  }
}

}  // namespace

void choose_lanes(Kernel& kernel, const Target& target) {
  const size_t first = kernel.in_parts ? 1 : 0;
  choose_lane_loop(kernel, target, first);
  if (!kernel.scan) transpose_lanes(kernel, first, target);
  tile_short_rows(kernel, first, target);
  narrow_short_rows(kernel, target);
}

std::optional<LoopPart> uneven_squares(const Kernel& kernel, const Target& target) {
  if (!is_plain(kernel)) return std::nullopt;
  int64_t points = 1;
  for (const Loop& l : kernel.loops) points *= l.size;
  if (points < target.tuning.peeled_points) return std::nullopt;
  Kernel scheduled = kernel;
  choose_lane_loop(scheduled, target, 0);
  const size_t loop = loop_to_transpose(scheduled, 0);
  if (loop == kernel.loops.size()) return std::nullopt;
  const int64_t size = kernel.loops[loop].size;
  const int64_t lanes = lanes_of_squares(scheduled);
  if (size % lanes == 0 || size < target.tuning.peeled_squares * lanes) return std::nullopt;
  return LoopPart{loop, size - size % lanes};
}

}  // namespace collet::codegen
