// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/grid_attention.h"

#include <collet/codegen/kernel_contraction.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sdk/codegen/kernel/loop_sets.h"
#include "sdk/codegen/kernel/used_range.h"

namespace collet::codegen {
namespace {

constexpr int64_t kLeastRows = 16;     ///< with fewer queries, most of a tile would be empty
constexpr int64_t kMostColumns = 128;  ///< most columns of the results
/// Rows that a warp computes with matrix instructions; also the least number of columns.
constexpr int kMatrixRows = 16;
constexpr int kMostSums = 80;   ///< most sums of scores and results that a thread can hold in registers
constexpr int kPlainSums = 16;  ///< scores that a thread computes without matrix instructions

int rounded_up(int64_t x, int64_t to) {
  return static_cast<int>((x + to - 1) / to * to);
}

/// Finds the loops that are rows, columns, keys and depth.
bool find_loops(const AttentionKernel& attention, AttentionSchedule& out) {
  const Kernel& kernel = attention.plan.kernel;
  // Values that are computed from a reduction do not depend on all outer loops here, so reductions are treated as
  // constants.
  Kernel without_reductions = kernel;
  for (Expr& e : without_reductions.exprs) {
    if (e.op == ExprOp::kReduced) e.op = ExprOp::kConstant;
  }
  const std::vector<uint64_t> deps = loop_dependencies(without_reductions);
  const auto of = [&](ExprId e) { return deps[static_cast<size_t>(e)]; };
  const uint64_t outer = outer_loops(kernel);
  const uint64_t keys = uint64_t{1} << kernel.outer;
  const uint64_t depth = inner_loops(kernel) & ~keys;
  uint64_t query = of(attention.query);
  uint64_t key = of(attention.key);
  out.query.value = attention.query;
  out.key.value = attention.key;
  if ((query & keys) != 0) {
    std::swap(query, key);
    std::swap(out.query.value, out.key.value);
  }
  if ((query & keys) != 0 || (key & keys) == 0) return false;
  const uint64_t logit = of(attention.logit);
  const uint64_t value = of(attention.value);
  if ((logit & depth) != 0 || (value & depth) != 0) return false;
  // The logit depends also on the operands of the score, which is a reduction.
  const uint64_t weights = outer & (logit | query | key);
  out.query.loops = weights & ~value & ~key;
  out.value.loops = outer & value & ~weights;
  out.batch = outer & ~out.query.loops & ~out.value.loops;
  for (TileOperand* o : {&out.query, &out.key}) {
    o->depth_loops = depth;
    o->depth = points_of(kernel, depth);
  }
  out.key.loops = keys;
  out.weight.value = attention.weight;
  out.weight.loops = out.query.loops;
  for (TileOperand* o : {&out.weight, &out.value}) {
    o->depth_loops = keys;
    o->depth = points_of(kernel, keys);
  }
  out.value.value = attention.value;
  for (TileOperand* o : {&out.query, &out.key, &out.weight, &out.value}) o->count = points_of(kernel, o->loops);
  out.batch_count = points_of(kernel, out.batch);
  out.logit = attention.logit;
  out.exponential = attention.exponential;
  if (out.batch_count > std::numeric_limits<int32_t>::max() / out.query.count)
    return false;  // more blocks than a grid may have
  return depth != 0 && out.query.count >= kLeastRows && out.value.count <= kMostColumns;
}

/// Returns the type in which matrix instructions multiply the two factors of a product, 0 if they cannot. If factors
/// are converted to f32, the values before the conversion become the factors.
uint32_t choose_type(const Kernel& kernel, TileOperand& a, TileOperand& b, bool tf32) {
  const ExprId x = before_conversion(kernel, a.value, COLLET_TYPE_F32);
  const ExprId y = before_conversion(kernel, b.value, COLLET_TYPE_F32);
  const uint32_t type = kernel.exprs[static_cast<size_t>(x)].type;
  if (type != kernel.exprs[static_cast<size_t>(y)].type) return 0;
  const uint32_t out = matrix_type_of(type, COLLET_TYPE_F32, tf32);
  if (out == 0) return 0;
  a.value = x;
  b.value = y;
  return out;
}

void choose_shapes(int rows, int keys, AttentionSchedule& out) {
  out.scores.rows = out.results.rows = rows;
  out.scores.columns = keys;
  out.results.columns = out.score_type != 0
                            ? rounded_up(out.value.count, kMatrixRows)
                            : std::max(keys, static_cast<int>(std::bit_ceil(static_cast<uint64_t>(out.value.count))));
  if (out.score_type != 0) {
    out.scores.part_rows = out.results.part_rows = kMatrixRows;
    out.scores.part_columns = out.scores.columns;
    out.results.part_columns = out.results.columns;
    return;
  }
  const int threads = rows * keys / kPlainSums;
  const int sums = rows * out.results.columns / threads;
  out.scores.part_rows = out.scores.part_columns = 4;
  out.results.part_rows = sums >= 64 ? 8 : 4;
  out.results.part_columns = sums / out.results.part_rows;
}

/// Narrows `ranges` to those values of the loops in a set that their points `first` .. `end` - 1 have.
void narrow(const Kernel& kernel, uint64_t loops, int64_t first, int64_t end, std::vector<LoopRange>& ranges) {
  int64_t points = points_of(kernel, loops);
  for (size_t l = 0; l < kernel.loops.size(); ++l) {
    if ((loops >> l & 1) == 0) continue;
    points /= kernel.loops[l].size;
    const int64_t from = first / points;
    const int64_t to = (end - 1) / points;
    ranges[l] = {from, to + 1};
    if (from != to) return;
    first -= from * points;
    end -= from * points;
  }
}

/// Shares the tiles of a period among `blocks`. Products are taken `group` at a time, so that blocks find their keys and
/// values in the cache; of a group, the longest tiles come first, and each goes to the block that ends first
/// (R. Graham, "Bounds on Multiprocessing Timing Anomalies", 1969).
void share_tiles(int64_t blocks, int64_t row_tiles, int64_t group, HiddenKeys& out) {
  const auto time_of = [&](int64_t tile) {
    const HiddenKeys::Range& keys = out.keys[static_cast<size_t>(tile % row_tiles)];
    return keys.end - keys.first + 1;  // one more for what a tile takes besides
  };
  std::vector<int64_t> order;
  for (int64_t first = 0; first < out.period; first += group) {
    const auto begin = static_cast<ptrdiff_t>(order.size());
    for (int64_t tile = first * row_tiles; tile < std::min(first + group, out.period) * row_tiles; ++tile)
      order.push_back(tile);
    std::stable_sort(order.begin() + begin, order.end(), [&](int64_t x, int64_t y) { return time_of(x) > time_of(y); });
  }
  out.tiles.assign(static_cast<size_t>(blocks), {});
  std::set<std::pair<int64_t, size_t>> ends;  // when each block ends
  for (size_t block = 0; block < out.tiles.size(); ++block) ends.emplace(0, block);
  for (const int64_t tile : order) {
    const auto [end, block] = *ends.begin();
    ends.erase(ends.begin());
    out.tiles[block].push_back(tile);
    ends.emplace(end + time_of(tile), block);
  }
}

/// Finds the keys that are hidden from each tile of queries; nullopt if none are.
std::optional<HiddenKeys> find_hidden_keys(const Kernel& kernel, const AttentionSchedule& a,
                                           const WarpgroupAttention& w, const GridLimits& limits) {
  constexpr int64_t kMostListed = int64_t{1} << 15;  // tiles in the lists of all blocks
  HiddenKeys out;
  const auto keys_loop = static_cast<size_t>(std::countr_zero(a.key.loops));
  const int64_t all = (a.key.count + w.keys - 1) / w.keys;
  bool any = false;
  for (int64_t tile = 0; tile * w.rows() < a.query.count; ++tile) {
    std::vector<LoopRange> ranges;
    for (const Loop& l : kernel.loops) ranges.push_back({0, l.size});
    narrow(kernel, a.query.loops, tile * w.rows(), std::min((tile + 1) * w.rows(), a.query.count), ranges);
    const std::optional<ElsewhereConstant> found = elsewhere_constant(kernel, a.logit, keys_loop, ranges);
    if (!found) return std::nullopt;
    const auto logit = static_cast<float>(real_of_element(COLLET_TYPE_F32, found->value));
    if (tile == 0) out.logit = logit;
    if (logit != out.logit || logit == std::numeric_limits<float>::infinity()) return std::nullopt;
    // Each tile of queries has at least one of keys.
    const int64_t first = std::clamp<int64_t>(found->range.first / w.keys, 0, all - 1);
    const int64_t end = std::clamp<int64_t>((found->range.end + w.keys - 1) / w.keys, first + 1, all);
    any = any || first > 0 || end < all;
    out.keys.push_back({first, end});
  }
  if (!any) return std::nullopt;
  const int64_t row_tiles = w.tiles(a) / a.batch_count;
  const int64_t bytes = a.key.count * (w.depth + w.columns) * 2;
  const int64_t group = std::max<int64_t>(limits.cache_bytes / 2 / bytes, 1);  // products whose keys and values fit
  out.period = std::clamp<int64_t>(kMostListed / row_tiles, 1, a.batch_count);
  share_tiles(std::min<int64_t>(w.tiles(a), limits.processors), row_tiles, group, out);
  return out;
}

/// Chooses how warpgroups compute an attention; nullopt if they do not.
std::optional<WarpgroupAttention> choose_warpgroup_attention(const Kernel& kernel, const AttentionSchedule& a,
                                                             const GridLimits& limits) {
  constexpr int kElementsOfLine = WarpgroupSchedule::kLineBytes / 2;
  constexpr int kMostDepth = 128;
  constexpr int64_t kLeastQueries = 64;
  constexpr size_t kMostExpressions = 40;  // a logit is computed for each score in registers
  constexpr int kLanes = 4;
  const bool is_half = a.score_type == COLLET_TYPE_BF16 || a.score_type == COLLET_TYPE_F16;
  if (!limits.warpgroups || !is_half || a.result_type != a.score_type) return std::nullopt;
  if (a.query.depth > kMostDepth || a.query.count < kLeastQueries || kernel.exprs.size() > kMostExpressions)
    return std::nullopt;
  WarpgroupAttention w;
  w.type = a.score_type;
  const bool are_boxes = find_boxes(kernel, a.query, a.batch, w.type, w.query) &&
                         find_boxes(kernel, a.key, a.batch, w.type, w.key) &&
                         find_boxes(kernel, a.value, a.batch, w.type, w.value);
  if (!are_boxes) return std::nullopt;
  w.depth = rounded_up(a.query.depth, kElementsOfLine);
  w.columns = rounded_up(a.value.count, kElementsOfLine);
  const std::optional<size_t> contiguous = contiguous_loop(kernel);
  if (contiguous && static_cast<size_t>(std::bit_width(a.value.loops)) == *contiguous + 1)
    w.lanes = lanes_along(kernel, *contiguous, kLanes);
  // Fewer consumers leave fewer processors idle at the end; more of them read keys and values less often.
  double best = 0;
  int chosen = 0;
  for (const int consumers : {2, 3}) {
    constexpr double kRowsOfReading = 32;  // the time to read the keys, in that of as many queries
    w.consumers = consumers;
    const int64_t waves = (w.tiles(a) + limits.processors - 1) / limits.processors;
    const double time = static_cast<double>(waves) * (w.rows() + kRowsOfReading);
    if (w.shared_bytes() > limits.block_shared_bytes || (consumers > 2 && w.depth + w.columns > 2 * kElementsOfLine))
      continue;
    if (chosen != 0 && time >= best) continue;
    best = time;
    chosen = consumers;
  }
  if (chosen == 0) return std::nullopt;
  w.consumers = chosen;
  w.hidden = find_hidden_keys(kernel, a, w, limits);
  if (w.hidden && !w.hidden->is_exact()) {
    const int64_t periods = (a.batch_count + w.hidden->period - 1) / w.hidden->period;
    w.flags = periods * w.hidden->most_tiles() * w.consumers * 4;
    if (w.shared_bytes() > limits.block_shared_bytes) {
      w.hidden.reset();
      w.flags = 0;
    }
  }
  set_box(w.query, w.rows(), w.depth);
  set_box(w.key, w.keys, w.depth);
  set_box(w.value, w.columns, w.keys);
  return w;
}

}  // namespace

int64_t HiddenKeys::most_tiles() const {
  size_t most = 0;
  for (const auto& list : tiles) most = std::max(most, list.size());
  return static_cast<int64_t>(most);
}

int64_t WarpgroupAttention::tiles(const AttentionSchedule& of) const {
  return (of.query.count + rows() - 1) / rows() * of.batch_count;
}

TileStorage AttentionSchedule::query_storage() const {
  return tile_storage(score_type, COLLET_TYPE_F32, query.by_depth, scores.rows, score_steps);
}

TileStorage AttentionSchedule::key_storage() const {
  return tile_storage(score_type, COLLET_TYPE_F32, key.by_depth, scores.columns, score_steps);
}

TileStorage AttentionSchedule::weight_storage() const {
  return tile_storage(result_type, COLLET_TYPE_F32, weight.by_depth, results.rows, scores.columns);
}

TileStorage AttentionSchedule::value_storage() const {
  return tile_storage(result_type, COLLET_TYPE_F32, value.by_depth, results.columns, scores.columns);
}

int64_t AttentionSchedule::shared_bytes() const {
  const int64_t logits = has_own_logits() ? scores.rows * logit_pitch() * 4 : 0;
  const int64_t factors = int64_t{scores.rows} * 4;
  const int64_t keys = key_storage().bytes();
  const int64_t values = value_storage().bytes();
  const int64_t tiles = query_storage().bytes() + (copies_ahead ? keys + values : std::max(keys, values)) +
                        weight_storage().bytes() + logits;
  return std::max(tiles, result_bytes()) + factors;
}

bool choose_attention(const AttentionKernel& attention, const GridLimits& limits, AttentionSchedule& out) {
  const Kernel& kernel = attention.plan.kernel;
  out = {};
  if (!find_loops(attention, out)) return false;
  AttentionSchedule by_matrix = out;
  by_matrix.score_type = choose_type(kernel, by_matrix.query, by_matrix.key, kernel.reductions[0].tf32);
  by_matrix.result_type = choose_type(kernel, by_matrix.weight, by_matrix.value, kernel.reductions[3].tf32);
  // The same threads compute both products, so both use matrix instructions or neither does.
  if (by_matrix.score_type != 0 && by_matrix.result_type != 0) out = by_matrix;
  find_direction(kernel, out.query);
  find_direction(kernel, out.key);
  find_direction(kernel, out.value);
  out.weight.by_depth = true;
  if ((out.warpgroups = choose_warpgroup_attention(kernel, out, limits))) return true;
  constexpr int kStepsOfInstruction = 32;  // bytes of the depth that the loop over instructions needs at a time
  const int step_bytes = out.score_type != 0 ? static_cast<int>(collet_type_bytes(out.score_type)) : 8;
  out.score_steps = rounded_up(out.query.depth, kStepsOfInstruction / step_bytes);
  // Larger tiles read the keys less often, but leave processors idle if there are few queries.
  std::optional<AttentionSchedule> chosen;
  for (const auto& [rows, keys] : {std::pair{64, 64}, std::pair{64, 32}, std::pair{32, 32}}) {
    choose_shapes(rows, keys, out);
    const int sums = rows * (out.scores.columns + out.results.columns) / out.block_threads();
    if (sums > kMostSums || out.shared_bytes() > limits.shared_bytes || out.block_threads() > limits.block_threads)
      continue;
    if (!chosen || (chosen->tiles() < limits.processors && out.tiles() > chosen->tiles())) chosen = out;
  }
  if (!chosen) return false;
  out = *chosen;
  const uint32_t stored = out.score_type != 0 ? out.score_type : static_cast<uint32_t>(COLLET_TYPE_F32);
  const uint32_t multiplied = out.result_type != 0 ? out.result_type : static_cast<uint32_t>(COLLET_TYPE_F32);
  out.query.is_copied = is_copied(kernel, out.query, out.query_storage(), stored);
  out.key.is_copied = is_copied(kernel, out.key, out.key_storage(), stored);
  out.value.is_copied = is_copied(kernel, out.value, out.value_storage(), multiplied);
  out.copies_ahead = out.key.is_copied && out.value.is_copied;
  out.copies_ahead = out.copies_ahead && out.shared_bytes() <= limits.shared_bytes;
  return true;
}

}  // namespace collet::codegen
