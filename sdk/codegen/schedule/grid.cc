// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/grid.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "sdk/codegen/kernel/loop_sets.h"

namespace collet::codegen {
namespace {

constexpr int kPointThreads = 256;  ///< threads of a block whose threads do not exchange data
constexpr int kRowThreads = 128;    ///< threads of a block in which each warp computes rows of its own
/// Most blocks that are started per processor; each block loops over its share of the work.
constexpr int64_t kBlocksPerProcessor = 32;
/// Rows of at most this many elements are computed by one warp, which needs no barrier.
constexpr int64_t kShortRow = 256;
/// Most points of a row that all threads of a block together keep in registers: 8 for each of 1,024 threads.
constexpr int64_t kKeptOfBlock = 8192;
/// Points of a row that each thread computes, if the row is not short: if there are few rows, and if there are many.
constexpr int64_t kUsualPoints = 4, kMostPoints = 16;

/// True if the points of the inner loops are adjacent in memory, rather than those of the last outer loop.
bool reads_along_rows(const Kernel& kernel) {
  const std::vector<uint64_t> deps = loop_dependencies(kernel);
  uint64_t inner = 0;
  for (size_t l = kernel.outer; l < kernel.loops.size(); ++l) inner |= uint64_t{1} << l;
  int along = 0;
  int across = 0;
  for (size_t k = 0; k < kernel.exprs.size(); ++k) {
    const Expr& e = kernel.exprs[k];
    if (e.op != ExprOp::kLoad || (deps[k] & inner) == 0) continue;
    if (std::abs(e.index.coefficient(kernel.loops.size() - 1)) == 1) ++along;
    if (kernel.outer > 0 && std::abs(e.index.coefficient(kernel.outer - 1)) == 1) ++across;
  }
  return across == 0 || along > across;
}

/// Returns how many points of the inner loops a thread may keep in registers: kMostPoints, or fewer if the kernel has many expressions.
int64_t most_kept_points(const Kernel& kernel) {
  constexpr int64_t kMostInstructions = 384;  ///< most instructions of the unrolled code for all points
  return std::min(kMostPoints, kMostInstructions / static_cast<int64_t>(kernel.exprs.size() + 1));
}

/// True if the elements of the kernel's scan may be combined in any order.
bool scans_in_groups(const Kernel& kernel) {
  return kernel.scan && kernel.scan->reduction.combine != COLLET_COMBINE_OTHER && !kernel.sequential &&
         kernel.outer + 1 == kernel.loops.size();
}

bool combines_threads(const Kernel& kernel) {
  if (kernel.reductions.empty() || kernel.scan || kernel.sequential || !kernel.updates.empty()) return false;
  return std::all_of(kernel.reductions.begin(), kernel.reductions.end(), [&](const Reduction& r) {
    if (r.combine != COLLET_COMBINE_OTHER) return true;
    // A body can combine the results of two threads if it accepts its own results as inputs.
    if (r.inputs.size() != r.types.size()) return false;
    for (size_t i = 0; i < r.inputs.size(); ++i) {
      if (kernel.exprs[static_cast<size_t>(r.inputs[i])].type != r.types[i] || r.inits[i] == kNoExpr) return false;
    }
    return true;
  });
}

uint32_t blocks_for(int64_t work, int64_t per_block, const GridLimits& limits) {
  const int64_t most = kBlocksPerProcessor * limits.processors;
  return static_cast<uint32_t>(std::clamp<int64_t>((work + per_block - 1) / per_block, 1, most));
}

/// Returns how many adjacent points of loop `last` a thread can load and store with aligned accesses of 16 bytes; 1 if it
/// cannot. It is the last loop, or the last outer loop.
int lanes_of(const Kernel& kernel, size_t last, const GridLimits& limits) {
  if (limits.neutral) return 1;  // compilers of source text make wide accesses themselves
  constexpr int kAccessBytes = 16;
  const uint64_t along = uint64_t{1} << last;
  const std::vector<uint64_t> deps = loop_dependencies(kernel);
  int bytes = 1;
  const auto widen = [&](uint32_t type) {
    bytes = std::max(bytes, static_cast<int>(collet_type_bytes(type)));
    return collet_type_kind(type) != COLLET_KIND_COMPLEX;
  };
  for (const Expr& e : kernel.exprs) {
    const bool suits = e.op == ExprOp::kConstant || e.op == ExprOp::kLoad || e.op == ExprOp::kIndex ||
                       e.op == ExprOp::kReduced || (e.op == ExprOp::kOp && e.opcode != COLLET_OP_REMAINDER);
    if (!suits || e.mask != kNoExpr) return 1;
    if (e.op == ExprOp::kLoad && !widen(e.type)) return 1;
  }
  const bool has_rows = !kernel.reductions.empty() && last >= kernel.outer;
  for (const Store& s : kernel.stores) {
    if (s.mask != kNoExpr || !widen(kernel.exprs[static_cast<size_t>(s.value)].type)) return 1;
    const bool is_of_row =
        has_rows && s.index.coefficient(last) == 0 && (deps[static_cast<size_t>(s.value)] & along) == 0;
    if (s.index.coefficient(last) != 1 && !is_of_row) return 1;
  }
  if (std::any_of(kernel.reductions.begin(), kernel.reductions.end(),
                  [](const Reduction& r) { return r.condition != kNoExpr; }))
    return 1;
  int64_t common = kAccessBytes / bytes;  // a power of two
  const auto divide = [&](int64_t x) {
    while (x % common != 0) common /= 2;
  };
  divide(kernel.loops[last].size);
  const auto align = [&](const Index& index) {
    const int64_t step = index.coefficient(last);
    if (step == 0) return true;
    if (step != 1 || !index.terms.empty()) return false;
    divide(index.constant);
    for (size_t l = 0; l < kernel.loops.size(); ++l) {
      if (l != last) divide(index.coefficient(l));
    }
    return true;
  };
  for (const Expr& e : kernel.exprs) {
    if (e.op == ExprOp::kLoad && !align(e.index)) return 1;
  }
  for (const Store& s : kernel.stores) {
    if (!align(s.index)) return 1;
  }
  return static_cast<int>(common);
}

/// Returns the bytes of shared memory that a block gets when it is started: all `used` bytes if a kernel may not declare so many, else 0.
uint32_t given_bytes(int64_t used, const GridLimits& limits) {
  return used > limits.declared_bytes ? static_cast<uint32_t>(used) : 0;
}

/// Gives the kernel lanes along a loop, if they are more than one.
void set_lanes(Kernel& kernel, size_t loop, int lanes) {
  if (lanes == 1) return;
  kernel.lanes = lanes;
  kernel.lane_loop = loop;
}

/// Returns the lanes of a kernel whose threads each reduce a column: along the last outer loop, if all loads and stores have
/// neighbours there.
int lanes_of_columns(const Kernel& kernel, const GridLimits& limits) {
  const bool suits = kernel.outer > 0 && !kernel.reductions.empty() && !kernel.sequential && !kernel.scan &&
                     kernel.updates.empty() &&
                     std::all_of(kernel.reductions.begin(), kernel.reductions.end(),
                                 [](const Reduction& r) { return r.combine != COLLET_COMBINE_OTHER; });
  return suits ? lanes_of(kernel, kernel.outer - 1, limits) : 1;
}

GridSchedule choose_schedule(Kernel& kernel, const GridLimits& limits) {
  GridSchedule out;
  const int64_t inner = inner_points(kernel);
  const uint64_t outer = outer_loops(kernel);
  const int64_t rows = points_of(kernel, outer);
  const int64_t threads = int64_t{limits.processors} * limits.processor_threads;
  if (choose_tiles(kernel, limits, out.tiles)) {
    out.form = GridSchedule::Form::kTiles;
    out.parallel = outer;
    if (choose_warpgroups(kernel, limits, out.tiles, out.warpgroups)) {
      out.form = GridSchedule::Form::kWarpgroups;
      out.block_threads = static_cast<uint32_t>(out.warpgroups.block_threads());
      out.blocks = static_cast<uint32_t>(std::min<int64_t>(out.tiles.tiles(), limits.processors));
      out.shared_bytes = static_cast<uint32_t>(out.warpgroups.shared_bytes());
      out.maps = {out.warpgroups.a.map, out.warpgroups.b.map};
      if (out.warpgroups.lanes > 1) {
        kernel.lanes = out.warpgroups.lanes;
        kernel.lane_loop = static_cast<size_t>(std::bit_width(out.tiles.b.loops)) - 1;
      }
      return out;
    }
    out.block_threads = static_cast<uint32_t>(out.tiles.shape.threads(out.tiles.matrix_type));
    out.blocks = blocks_for(out.tiles.tiles(), 1, limits);
    out.shared_bytes = given_bytes(out.tiles.shared_bytes(kernel.reductions[0].types[0]), limits);
    return out;
  }
  if (!limits.neutral && choose_transpose(kernel, limits, out.transpose)) {
    out.form = GridSchedule::Form::kTransposedTiles;
    out.parallel = outer;
    out.block_threads = TransposeSchedule::kThreads;
    out.blocks = blocks_for(count_tiles(kernel, out.transpose), 1, limits);
    return out;
  }
  const bool any_order = std::all_of(kernel.reductions.begin(), kernel.reductions.end(),
                                     [](const Reduction& r) { return r.combine != COLLET_COMBINE_OTHER; });
  const bool combines = combines_threads(kernel) && (any_order || !limits.neutral);
  const bool shares = (combines || (scans_in_groups(kernel) && !limits.neutral)) && inner >= limits.warp;
  if (shares && (reads_along_rows(kernel) || rows * limits.warp < threads)) {
    out.form = GridSchedule::Form::kRows;
    out.parallel = outer;
    out.in_order = std::any_of(kernel.reductions.begin(), kernel.reductions.end(),
                               [](const Reduction& r) { return r.combine == COLLET_COMBINE_OTHER; });
    // A short row is computed by a warp, which needs no barrier. If there are few rows, more threads share each.
    const bool few = rows < limits.processors && inner > 8 * limits.warp;
    const int64_t most_kept = kernel.scan || out.in_order ? 0 : most_kept_points(kernel);
    const bool is_short = inner <= std::max(kShortRow, most_kept * limits.warp);
    // If that leaves enough threads for all processors, a thread computes more points, so that fewer threads exchange.
    const int64_t more_points = kernel.scan ? kUsualPoints : out.in_order ? kMostPoints : most_kept;
    const bool many = more_points > kUsualPoints && rows * inner / more_points >= threads / 4;
    const int64_t points_of_thread = many ? more_points : kUsualPoints;
    const auto wanted = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(inner / points_of_thread)));
    const int64_t threads_of_row =
        is_short && !few ? limits.warp : std::clamp<int64_t>(wanted, 2 * int64_t{limits.warp}, limits.block_threads);
    out.group = static_cast<int>(threads_of_row);
    int lanes = kernel.scan || out.in_order ? 1 : lanes_of(kernel, kernel.loops.size() - 1, limits);
    while (lanes > 1 && (inner < lanes * threads_of_row || lanes > most_kept)) lanes /= 2;
    set_lanes(kernel, kernel.loops.size() - 1, lanes);
    const int64_t each = (inner / lanes + threads_of_row - 1) / threads_of_row * lanes;
    if (each <= most_kept && each * threads_of_row <= kKeptOfBlock) out.kept = static_cast<int>(each / lanes);
    const int64_t block = threads_of_row == limits.warp && !limits.neutral
                              ? std::min<int64_t>(kRowThreads, rows * limits.warp)
                              : threads_of_row;
    out.block_threads = static_cast<uint32_t>(block);
    out.blocks = blocks_for(rows, block / threads_of_row, limits);
    return out;
  }
  set_lanes(kernel, kernel.outer - 1, lanes_of_columns(kernel, limits));
  out.parallel = kernel.sequential ? independent_loops(kernel) : outer;
  const int64_t work = points_of(kernel, out.parallel) / kernel.lanes;
  out.block_threads =
      static_cast<uint32_t>(std::clamp<int64_t>((work + limits.warp - 1) / limits.warp * limits.warp, limits.warp,
                                                std::min(kPointThreads, limits.block_threads)));
  // With narrow accesses, all threads together have too little memory in flight. Each of them then makes several.
  constexpr int kTogether = 4;
  constexpr size_t kMostExpressions = 16;
  if (is_plain(kernel) && kernel.lanes == 1 && !kernel.sequential && kernel.exprs.size() <= kMostExpressions &&
      work >= 2 * kTogether * threads)
    out.together = kTogether;
  out.blocks = blocks_for(work / out.together, out.block_threads, limits);
  // Half of the threads that a processor can run keep the memory busy with wide accesses. Without a limit, branches that
  // are hardly ever taken, as those for large arguments of a sine, could take their registers.
  if (is_plain(kernel) && kernel.lanes > 1 && out.block_threads == kPointThreads)
    out.resident_blocks = static_cast<uint32_t>(limits.processor_threads / 2 / kPointThreads);
  return out;
}

}  // namespace

SplitLimits split_limits(const Kernel& kernel, const GridLimits& limits) {
  constexpr int64_t kMostParts = 128;
  constexpr int64_t kLeastOfPart = 16;
  SplitLimits out{false, 2 * int64_t{limits.processors}};
  if (kernel.loops.size() == kernel.outer) return out;
  const int64_t threads = int64_t{limits.processors} * limits.processor_threads;
  if (TileSchedule tiles; choose_tiles(kernel, limits, tiles)) {
    constexpr int64_t kMostPartsOfTile = 16;
    constexpr int64_t kLeastRounds = 4;
    out.few_rows = 0;
    if (const std::optional<int64_t> parts = depth_parts(kernel, limits, tiles)) {
      out.parts = *parts > 1 ? *parts : 0;
      return out;
    }
    for (int64_t parts = std::min(kMostPartsOfTile, limits.processors / tiles.tiles()); parts > 1; --parts) {
      if (!divides_inner_loop(kernel, parts) || tiles.depth / parts < kLeastRounds * tiles.round) continue;
      out.parts = parts;
      break;
    }
    return out;
  }
  if (reads_along_rows(kernel)) return out;
  const int64_t wanted = threads / 2;  // so many keep the memory busy
  const int64_t columns =
      std::max<int64_t>(points_of(kernel, outer_loops(kernel)) / lanes_of_columns(kernel, limits), 1);
  out.few_rows = 0;
  for (int64_t parts = std::min(kMostParts, wanted / columns); parts > 1 && out.parts == 0; --parts) {
    if (divides_inner_loop(kernel, parts) && inner_points(kernel) / parts >= kLeastOfPart) out.parts = parts;
  }
  return out;
}

GridKernel schedule_grid(Kernel kernel, const GridLimits& limits) {
  if (is_plain(kernel) && kernel.outer != 0)
    set_lanes(kernel, kernel.outer - 1, lanes_of(kernel, kernel.outer - 1, limits));
  GridSchedule schedule = choose_schedule(kernel, limits);
  return {std::move(kernel), schedule};
}

GridKernel schedule_updates(Kernel kernel, const UpdateSchedule& updates, const GridLimits& limits) {
  GridSchedule schedule;
  schedule.form = GridSchedule::Form::kUpdates;
  schedule.updates = updates;
  schedule.parallel = outer_loops(kernel) & ~updates.ordered;
  schedule.block_threads = kPointThreads;
  const int64_t free = updates.part == UpdateSchedule::Part::kUpdates ? updates.free_points : 1;
  schedule.blocks = blocks_for(updates.ordered_points * free, kPointThreads, limits);
  return {std::move(kernel), schedule};
}

GridKernel schedule_attention(Kernel kernel, const AttentionSchedule& attention, const GridLimits& limits) {
  GridSchedule schedule;
  schedule.form = GridSchedule::Form::kAttention;
  schedule.attention = attention;
  schedule.parallel = outer_loops(kernel);
  if (attention.warpgroups) {
    const WarpgroupAttention& w = *attention.warpgroups;
    schedule.block_threads = static_cast<uint32_t>(w.block_threads());
    schedule.blocks = static_cast<uint32_t>(std::min<int64_t>(w.tiles(attention), limits.processors));
    schedule.shared_bytes = static_cast<uint32_t>(w.shared_bytes());
    schedule.maps = {w.query.map, w.key.map, w.value.map};
    if (w.lanes > 1) {
      kernel.lanes = w.lanes;
      kernel.lane_loop = static_cast<size_t>(std::bit_width(attention.value.loops)) - 1;
    }
    return {std::move(kernel), schedule};
  }
  schedule.block_threads = static_cast<uint32_t>(attention.block_threads());
  schedule.blocks = static_cast<uint32_t>(attention.tiles());
  schedule.shared_bytes = given_bytes(attention.shared_bytes(), limits);
  return {std::move(kernel), schedule};
}

std::string print_schedule(const GridSchedule& schedule) {
  const std::string grid =
      std::to_string(schedule.blocks) + " blocks of " + std::to_string(schedule.block_threads) + " threads";
  if (schedule.form == GridSchedule::Form::kRows)
    return "rows, " + std::to_string(schedule.group) + " threads each" +
           (schedule.kept > 0 ? " with " + std::to_string(schedule.kept) + " iterations" : "") +
           (schedule.in_order ? " in order, " : ", ") + grid;
  if (schedule.form == GridSchedule::Form::kTiles) {
    const TileSchedule& t = schedule.tiles;
    const auto copied = [](const TileOperand& o) { return o.is_copied ? "copied" : "computed"; };
    return "tiles " + std::to_string(t.shape.rows) + " x " + std::to_string(t.shape.columns) + " of " +
           std::to_string(t.batch_count) + " products " + std::to_string(t.a.count) + " x " +
           std::to_string(t.b.count) + " x " + std::to_string(t.depth) + ", " + copied(t.a) + " and " + copied(t.b) +
           " " + std::to_string(t.rounds) + " rounds of " + std::to_string(t.round) +
           (t.matrix_type != 0 ? ", matrix instructions, " : ", ") + grid;
  }
  if (schedule.form == GridSchedule::Form::kWarpgroups) {
    const TileSchedule& t = schedule.tiles;
    const WarpgroupSchedule& w = schedule.warpgroups;
    const auto along = [](const BoxOperand& o) { return o.by_depth ? " by depth" : " across"; };
    return "tiles " + std::to_string(w.rows) + " x " + std::to_string(w.columns) + " of " +
           std::to_string(t.batch_count) + " products " + std::to_string(t.a.count) + " x " +
           std::to_string(t.b.count) + " x " + std::to_string(t.depth) + " by " + std::to_string(w.consumers()) +
           " warpgroups," + along(w.a) + " and" + along(w.b) + ", " + std::to_string(w.rounds) + " rounds of " +
           std::to_string(w.round) + ", " + std::to_string(w.row_group) + " rows of tiles together, " + grid;
  }
  if (schedule.form == GridSchedule::Form::kAttention) {
    const AttentionSchedule& a = schedule.attention;
    if (a.warpgroups) {
      const WarpgroupAttention& w = *a.warpgroups;
      return "attention by " + std::to_string(w.consumers) + " warpgroups, " + std::to_string(a.batch_count) +
             " times " + std::to_string(a.query.count) + " queries, " + std::to_string(a.key.count) + " keys of " +
             std::to_string(a.key.depth) + ", " + std::to_string(a.value.count) + " columns; " +
             std::to_string(w.places) + " places for " + std::to_string(w.keys) + " keys or values, " +
             (w.hidden ? "without hidden keys, " : "") + grid;
    }
    return "attention, " + std::to_string(a.batch_count) + " times " + std::to_string(a.query.count) + " queries, " +
           std::to_string(a.key.count) + " keys of " + std::to_string(a.key.depth) + ", " +
           std::to_string(a.value.count) + " columns; tiles " + std::to_string(a.scores.rows) + " x " +
           std::to_string(a.scores.columns) + (a.score_type != 0 ? ", matrix instructions, " : ", ") + grid;
  }
  if (schedule.form == GridSchedule::Form::kUpdates) {
    const UpdateSchedule& u = schedule.updates;
    return (u.part == UpdateSchedule::Part::kKeys ? "keys of " : "grouped updates of ") +
           std::to_string(u.ordered_points) + " points and " + std::to_string(u.free_points) + " beside, " + grid;
  }
  if (schedule.form == GridSchedule::Form::kTransposedTiles)
    return "transposed tiles of the last loop and loop " + std::to_string(schedule.transpose.across) + ", " + grid;
  std::string loops;
  for (int l = 0; l < 64; ++l) {
    if ((schedule.parallel >> l & 1) != 0) loops += (loops.empty() ? " of loops " : ", ") + std::to_string(l);
  }
  return (schedule.together > 1 ? "a thread for " + std::to_string(schedule.together) + " points at a time"
                                : std::string("a thread for each point")) +
         (loops.empty() ? std::string(", in order") : loops) + ", " + grid;
}

}  // namespace collet::codegen
