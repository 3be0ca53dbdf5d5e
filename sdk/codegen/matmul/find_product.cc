// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/kernel_contraction.h>
#include <collet/codegen/kernel_transform.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "sdk/codegen/lower/convolution.h"
#include "sdk/codegen/matmul/matmul.h"
#include "sdk/codegen/matmul/operand_packer.h"
#include "sdk/codegen/matmul/product_loops.h"
#include "sdk/codegen/matmul/zero_parts.h"
#include "sdk/codegen/schedule/lanes.h"
#include "sdk/codegen/schedule/unroll_and_jam.h"

namespace collet::codegen {
namespace {

/// Decides how a product is computed: its loops, its tiles and the places of its operands.
class ProductPlanner {
 public:
  ProductPlanner(const KernelPlan& plan, const Graph& graph, const Target& target, Product& out)
      : l_(plan), graph_(graph), target_(target), out_(out) {}

  /// Returns null if micro-kernels compute the product, else why they do not.
  const char* run(size_t batch_loops) {
    if (!l_.find(batch_loops)) return "its factors, its sum or its result are not those of a product of matrices";
    set_sizes();
    split_columns();
    if (!pack_neighbours()) return "no instruction multiplies its elements, or its depth does not suit the instruction";
    if (const char* const why = why_not_worthwhile()) return why;
    split_rows();
    if (!both_signed() && out_.batches() == 1) zeros_.find();
    split_depth();
    choose_tile();
    describe();
    if (both_signed()) raised_ = &l_.a;
    operand_a();
    if (both_signed() && !out_.a.packed) raised_ = &l_.b;
    out_.signed_a = out_.packs == 4 && l_.is_signed(l_.a) && raised_ != &l_.a;
    operand_b();
    if (raised_ == &l_.b) packer().start_rows(out_.a);
    set_parts();
    const auto fits = [](const ProductOperand& o) { return !o.packed || o.pack.buffers.size() <= kMostPackBuffers; };
    return fits(out_.a) && fits(out_.b) ? nullptr : "a factor is computed from too many arrays";
  }

 private:
  OperandPacker packer() const { return {l_, graph_, target_, out_, raised_}; }

  /// Sets the product's sizes to those of the groups of loops.
  void set_sizes() {
    out_.rows = l_.extent(l_.rows);
    out_.columns = l_.extent(l_.columns);
    out_.depth = l_.extent(l_.depth);
    out_.ldc = l_.rows.empty() ? out_.columns : l_.store().index.coefficient(l_.rows.back());
    out_.batch.clear();
    for (size_t l : l_.batch) out_.batch.emplace_back(l_.size(l), l_.store().index.coefficient(l));
  }

  /// Records what the loops do not change any more.
  void describe() {
    out_.type = l_.type;
    out_.converts = l_.converts;
    out_.result = l_.plan().buffers[l_.store().buffer];
    out_.c_offset = l_.store().index.constant;
    for (size_t l = 0; l < l_.kernel.outer; ++l) out_.dims.push_back(l_.size(l));
    out_.batch_loops = l_.batch;
    out_.row_loops = l_.rows;
    out_.column_loops = l_.columns;
  }

  /// Packs b row by row if its columns are several loops, because splitting a column number into loops would take divisions.
  void split_columns() {
    if (l_.columns.size() < 2) return;
    const int64_t size = l_.size(l_.columns.back());
    const int64_t lanes = std::max(1, target_.vector_bits / (8 * l_.element_bytes()));
    // Otherwise packing all columns costs less than the lanes of the last vector that no column uses.
    const bool fills = size * 8 > (size + lanes - 1) / lanes * lanes * 7;
    int64_t step = 0;
    if (l_.b.load && l_.step_of(l_.b.load->index, l_.columns, step)) return;
    in_rows_ = true;
    if (!fills || size < 3 * lanes) return;
    l_.keep_last_column();
    set_sizes();
  }

  /// Packs as many neighbours along the depth into one element as an instruction of the target multiplies and adds at once. Returns false if
  /// the target has no such instruction and no other way to multiply the type.
  bool pack_neighbours() {
    const int64_t size = l_.depth.empty() ? 1 : l_.size(l_.depth.back());
    const auto is_bf16 = [&](const Factor& f) { return l_.converted_from(f.value) == COLLET_TYPE_BF16; };
    if (l_.type == COLLET_TYPE_S32) {
      const bool quads = target_.int8_dot && size % 4 == 0 && !in_rows_ && (l_.is_signed(l_.a) || l_.is_signed(l_.b));
      out_.packs = quads ? 4 : 2;
      if (size % out_.packs != 0) return false;
    } else if (l_.type == COLLET_TYPE_F32 && target_.bf16_dot && size % 2 == 0 && is_bf16(l_.a) && is_bf16(l_.b)) {
      out_.packs = 2;
    }
    if (out_.packs == 1) return true;
    l_.pack_neighbours(out_.packs);
    set_sizes();
    return true;
  }

  /// True if both operands have signed bytes. The instruction for four bytes takes unsigned bytes of one operand, so 128 is added to each
  /// element of one of those that are packed: `raised_`.
  bool both_signed() const { return out_.packs == 4 && l_.is_signed(l_.a) && l_.is_signed(l_.b); }

  /// If one distance does not lead from each row to the next, as for windows over an image, makes tiles of the rows of a line, and segments of
  /// the depth, within which distances are constant. So the operand is read in place.
  void split_rows() {
    int64_t row = 0;
    int64_t step = 0;
    // The sums of rows that overlap would take longer than to pack them.
    if (!l_.a.load || both_signed() || l_.steps_of_a(row, step)) return;
    const Index& index = l_.a.load->index;
    const auto behind = [](const LoopGroup& g, size_t first) {
      return LoopGroup(g.begin() + static_cast<ptrdiff_t>(first), g.end());
    };
    size_t first = l_.rows.size();
    while (first > 0 && l_.step_of(index, behind(l_.rows, first - 1), step)) --first;
    const LoopGroup line = behind(l_.rows, first);
    const int64_t line_rows = l_.extent(line);
    size_t run = l_.depth.size();
    int64_t length = 1;
    for (; run > 0; --run) {
      const LoopGroup longer = behind(l_.depth, run - 1);
      if (!l_.step_of(index, longer, step) || step != 1) break;
      const int64_t size = l_.extent(longer);
      if (length >= target_.tuning.least_segment && size > target_.tuning.most_segment) break;
      length = size;
    }
    l_.step_of(index, line, step);
    if (clashes(step) && line_rows > target_.tuning.line_rows) return;
    if (!lines_suit(target_.tuning, line_rows, out_.depth * out_.columns)) return;
    if (line_rows < target_.tuning.line_rows || length < target_.tuning.least_segment) return;
    if (out_.depth / length > target_.tuning.product_segments) return;
    if (out_.batches() * (out_.rows / std::max<int64_t>(line_rows, 1)) > target_.tuning.product_batches) return;
    l_.move_rows_to_batch(first);
    set_sizes();
    run_begin_ = run;
  }

  /// Splits a loop of the depth, so that a block of the depth is a number of whole loops, see pack_depth_of_loops.
  void split_depth() {
    int64_t row = 0;
    int64_t step = 0;
    const LoopGroup& depth = l_.depth;
    const bool reads_packed = out_.packs > 1 && l_.a.load;
    if (run_begin_ || depth.size() < 2 || reads_packed || !is_deep() || pack_depth_of_loops() != 0) return;
    if (both_signed()) return;  // the sums that the results start with go through the loops of the plan
    if (l_.steps_of_a(row, step)) return;
    const Tuning& t = target_.tuning;
    size_t i = depth.size() - 1;
    int64_t steps = 1;
    while (i > 0 && steps * l_.size(depth[i]) <= t.most_packed_depth) steps *= l_.size(depth[i--]);
    if (i == 0 && !zeros_.empty()) return;                // they depend on this loop
    if (i + 1 == depth.size() && out_.packs > 1) return;  // it counts packed elements
    const int64_t size = l_.size(depth[i]);
    for (int64_t inside = std::min(t.most_packed_depth / steps, size / 2); inside * steps >= t.least_packed_depth;
         --inside) {
      if (size % inside == 0) return l_.split_depth(i, inside);
    }
  }

  /// Sets the parts of the depth outside of which `a` is zero.
  void set_parts() {
    ProductOperand& a = out_.a;
    const std::optional<ZeroBorder>& border = l_.plan().zero_border;
    if (run_begin_) {
      if (border && border->value == a.value && out_.packs == 1) a.parts_of_batches = parts_of_batches(*border, out_);
    } else if (!zeros_.empty() && a.packed) {
      for (int64_t first = 0; first < out_.rows; first += out_.tile_rows)
        a.parts_of_tiles.push_back(zeros_.part_of(first, std::min(first + out_.tile_rows, out_.rows) - 1));
    }
  }

  const char* why_not_worthwhile() const {
    const Tuning& t = target_.tuning;
    if (out_.batches() > target_.tuning.product_batches) return "it has too many batches";
    if (out_.columns < t.product_columns) return "it has few columns";
    if (out_.depth < t.product_depth) return "its depth is small";
    const bool in_place = l_.reads_b_in_place();
    // Each element of b would be used once: packing it costs more.
    if (out_.rows == 1 && !in_place) return "it has one row, and its other factor would be packed";
    const int64_t most_packed =
        l_.reads_b_in_windows() ? target_.second_cache / l_.element_bytes() : int64_t{t.packed_b_elements};
    if (out_.rows < t.packing_rows && !in_place && out_.depth * out_.columns > most_packed)
      return "it has few rows, and its other factor, which is large, would be packed";
    return out_.rows * out_.columns * out_.depth * out_.batches() >= t.product_points ? nullptr : "it is small";
  }

  void choose_tile() {
    const int bytes = l_.element_bytes();
    out_.lanes = std::max(1, target_.vector_bits / 8 / bytes);
    // With few columns, shorter vectors are used, and more of them at a time.
    while (out_.lanes * bytes > target_.tuning.shortest_vector && out_.columns <= out_.lanes / 2) out_.lanes /= 2;
    const int64_t most = has_many_registers() ? kMostTileRows : 6;
    // Tiles within which the conditions do not change skip more of the depth; they must not be much smaller.
    const int64_t together = zeros_.rows_together();
    const bool fits = out_.by_hand.tile_rows == 0 && together >= most / 2 && together <= most;
    const int64_t tiles = fits ? out_.rows / together : (out_.rows + most - 1) / most;
    out_.tile_rows = static_cast<int>((out_.rows + tiles - 1) / tiles);
    if (const int rows = rows_in_lines(most); !fits && rows > 0) out_.tile_rows = rows;
    if (out_.by_hand.tile_rows != 0)
      out_.tile_rows = static_cast<int>(std::min<int64_t>(out_.by_hand.tile_rows, out_.rows));
    in_lines_ = is_in_lines() && l_.size(l_.rows.back()) % out_.tile_rows == 0;
    out_.vectors = vectors_of(out_.tile_rows);
  }

  bool has_many_registers() const { return target_.vector_registers >= 32; }

  /// Returns the number of vectors of a row of a tile.
  int vectors_of(int tile_rows) const {
    const int sums = target_.vector_registers - 4;  // registers for the sums of a tile
    const int64_t needed = (out_.columns + out_.lanes - 1) / out_.lanes;
    if (out_.by_hand.vectors != 0) return static_cast<int>(std::min<int64_t>(out_.by_hand.vectors, needed));
    int vectors = std::min(sums / tile_rows, kMostTileVectors);
    // Registers are for the sums, an element of a and, unless a single row uses them, a row of b.
    while (vectors > 1 && (tile_rows + (tile_rows == 1 ? 0 : 1)) * vectors + 1 > target_.vector_registers) --vectors;
    // With 7 rows, three vectors need fewer instructions for each product than two, even if the last panel is narrower.
    const bool pays = tile_rows == 7 && needed >= 8;
    if (tile_rows > 6 && vectors > 2 && needed % vectors != 0 && !pays) vectors = 2;
    return static_cast<int>(std::min<int64_t>(std::max(vectors, 1), needed));
  }

  /// True if `a` must be packed, and the rows of its innermost loop of rows are neighbours in memory, but not the steps of
  /// the depth.
  bool is_in_lines() const {
    if (!l_.a.access || run_begin_ || l_.rows.empty() || l_.depth.empty()) return false;
    const Index& index = l_.a.access->index;
    int64_t row = 0;
    int64_t step = 0;
    const bool direct = l_.steps_of_a(row, step) && (row == 1 || step == 1);
    return !direct && index.coefficient(l_.rows.back()) == 1 && index.coefficient(l_.depth.back()) != 1;
  }

  /// Returns the number of rows of a tile of whole lines of `a`, see is_in_lines; 0 if such tiles would be much smaller
  /// than `most` rows. Tiles without a narrower last panel come first.
  int rows_in_lines(int64_t most) const {
    if (!is_in_lines()) return 0;
    const int64_t needed = (out_.columns + out_.lanes - 1) / out_.lanes;
    int found = 0;
    for (auto rows = static_cast<int>(most); rows >= most / 2; --rows) {
      if (l_.size(l_.rows.back()) % rows != 0) continue;
      if (needed % vectors_of(rows) == 0) return rows;
      if (found == 0) found = rows;
    }
    return found;
  }

  /// Describes an operand that is read where it is. Returns false if its steps vary. `lines`: the rows of a, or the columns of b.
  bool direct(ProductOperand& o, const Factor& f, const LoopGroup& lines) const {
    if (!f.load) return false;
    const Index& index = f.load->index;
    if (!l_.step_of(index, l_.depth, o.depth) || !l_.step_of(index, lines, o.row)) return false;
    place(o, f);
    return true;
  }

  /// Records where an operand is, and the distances between its matrices.
  void place(ProductOperand& o, const Factor& f) const {
    o.value = l_.value_of(*f.load);
    o.offset = f.load->index.constant;
    for (size_t l : l_.batch) o.batch.emplace_back(l_.size(l), f.load->index.coefficient(l));
  }

  /// True if cache lines that are `step` elements apart map to the same cache set.
  bool clashes(int64_t step) const {
    const int bytes = l_.element_bytes();
    return step * bytes % (target_.cache_way / 2) == 0 && out_.depth > target_.tuning.clashing_depth;
  }

  /// Returns how many rows, `step` elements apart, keep their lines in the first cache at the same time. A quarter of the ways is left
  /// to the lines of b.
  int64_t lines_together(int64_t step) const {
    const int64_t bytes = step * (l_.element_bytes());
    const int64_t ways = std::max<int64_t>(target_.first_cache / target_.cache_way * 3 / 4, 1);
    return ways * (target_.cache_way / std::gcd(bytes, target_.cache_way));
  }

  /// Makes the micro-kernel read `a` in segments of the depth, with one address for each segment.
  void in_segments(ProductOperand& a) {
    const Index& index = l_.a.load->index;
    const auto begin = l_.depth.begin() + static_cast<ptrdiff_t>(*run_begin_);
    l_.step_of(index, l_.rows, a.row);
    a.depth = 1;
    a.tile = a.row * out_.tile_rows;
    a.run = l_.extent(LoopGroup(begin, l_.depth.end()));
    place(a, l_.a);
    std::vector<std::pair<int64_t, int64_t>> outside;
    for (auto l = l_.depth.begin(); l != begin; ++l) outside.emplace_back(l_.size(*l), index.coefficient(*l));
    a.segments = offsets_of(outside, 0);
  }

  void operand_a() {
    ProductOperand& a = out_.a;
    if (run_begin_) return in_segments(a);
    if (direct(a, l_.a, l_.rows)) {
      const bool clash = clashes(a.depth == 1 ? a.row : a.depth);
      const int64_t together = lines_together(a.depth == 1 ? a.row : a.depth);
      const bool small = out_.columns <= 2 * out_.panel() || out_.rows <= together;
      if (small && clash && a.depth == 1)
        out_.tile_rows = static_cast<int>(std::min<int64_t>(out_.tile_rows, together));
      a.tile = a.row * out_.tile_rows;
      if ((a.depth == 1 || a.row == 1) && (small || !clash)) return;
    }
    const bool by_depth = (a.value != kNone && a.row == 1 && out_.rows > 1) || in_lines_;
    a = {};
    packer().pack_a({by_depth, in_lines_, pack_depth()}, a);
  }

  /// True if the second cache holds few rows of `a` of the whole depth.
  bool is_deep() const {
    const int64_t bytes = l_.element_bytes();
    return out_.depth * bytes * target_.tuning.packed_b_rows >= target_.second_cache * 3 / 8;
  }

  /// Returns how many steps of the depth are packed at a time; 0 means all of them. With all steps of a deep product, the second cache would hold
  /// few rows, and all of b would be read for each few rows.
  int64_t pack_depth() const {
    if (out_.rows <= target_.tuning.far_tiles * out_.tile_rows || !is_deep()) return 0;
    if (l_.depth.size() > 1) return pack_depth_of_loops();
    for (int64_t n = out_.depth / target_.tuning.most_packed_depth; n <= out_.depth / target_.tuning.least_packed_depth;
         ++n) {
      if (n > 1 && out_.depth % n == 0 && out_.depth / n <= target_.tuning.most_packed_depth) return out_.depth / n;
    }
    return 0;
  }

  /// Returns the number of steps of the depth in a block of whole inner loops, whose addresses are affine. The block has
  /// as many of these loops as the limits allow. Returns 0 if there is no such block.
  int64_t pack_depth_of_loops() const {
    int64_t steps = 1;
    int64_t best = 0;
    for (size_t i = l_.depth.size(); i-- > 0;) {
      steps *= l_.size(l_.depth[i]);
      if (steps > target_.tuning.most_packed_depth || steps == out_.depth) break;
      if (steps >= target_.tuning.least_packed_depth) best = steps;
    }
    return best;
  }

  void operand_b() {
    ProductOperand& b = out_.b;
    if (direct(b, l_.b, l_.columns) && (b.row == 1 || out_.columns == 1)) {
      // Reading the operand in place is fastest if it is read only once or twice, or if it fits into the cache as it
      // is.
      int64_t rows = out_.rows;
      for (auto level = b.batch.rbegin(); level != b.batch.rend() && level->second == 0; ++level) rows *= level->first;
      if (rows <= target_.tuning.in_place_tiles * out_.tile_rows ||
          (out_.depth * b.depth <= target_.tuning.near_elements && !clashes(b.depth))) {
        stream_b(rows);
        place_panels();
        return;
      }
    }
    b = {};
    in_rows_ ? packer().pack_rows_of_b(b) : packer().pack_panels_of_b(b);
  }

  /// Decides whether panels of b are copied or read in place, and prefetched there.
  ///
  /// Panels are copied if b does not fit into the second cache, and each row of a panel is on another page, so that a
  /// panel needs more entries than the first-level TLB has. They are also copied if the first cache keeps few of their
  /// rows, which are far apart, until the next tile reads them; not if a tile has many registers, and so takes as long
  /// for a row as the second cache. If even rows that are prefetched are evicted before they are used, this pays for few
  /// tiles.
  void place_panels() {
    ProductOperand& b = out_.b;
    if (b.streams) return;
    const int64_t bytes = l_.element_bytes();
    const bool is_far = b.depth * bytes >= target_.page && out_.depth * b.depth * bytes > target_.second_cache;
    const int64_t together = lines_together(b.depth);
    const bool evicts = !has_many_registers() && out_.depth > together;
    const bool evicts_prefetched = evicts && together <= target_.tuning.prefetched_rows;
    b.unhinted = b.unhinted || evicts_prefetched;
    if (evicts_prefetched) {
      b.copied_for = target_.tuning.copied_far_tiles;
    } else if (is_far || (evicts && together <= 2 * target_.tuning.prefetched_rows)) {
      b.copied_for = target_.tuning.copied_tiles;
    }
  }

  /// If so few rows are multiplied that reading b from memory takes most of the time, reads b row by row, as the
  /// processor prefetches it, and not in panels. Tiles then get few columns, unless a single row is multiplied by a
  /// matrix that may be in a cache. If the tiles of several rows are target_.tuning.wide_tile vectors wide, panels are kept, because
  /// they are read as fast.
  void stream_b(int64_t rows) {
    const int64_t bytes = out_.depth * out_.columns * (l_.element_bytes());
    const int64_t tiles = (rows + out_.tile_rows - 1) / out_.tile_rows;
    // With more tiles of rows, b must be larger for this to pay, because the result is loaded and stored for every few
    // rows of b.
    if (tiles > target_.tuning.far_tiles || run_begin_) return;
    out_.b.unhinted = rows <= target_.tuning.unhinted_rows;
    if (bytes < (rows == 1 ? target_.tuning.far_b_of_row : tiles * target_.tuning.near_caches) * target_.second_cache)
      return;
    if (out_.columns < 8 * out_.lanes || (out_.rows > 1 && out_.vectors >= target_.tuning.wide_tile)) return;
    out_.b.streams = true;
    // From memory, two cache lines of each row at a time are read fastest; from a cache, the widest tile.
    if (out_.rows > 1 || bytes > target_.tuning.far_caches * target_.second_cache)
      out_.vectors = std::min(out_.vectors, 2);
  }

  ProductLoops l_;
  const Graph& graph_;
  const Target& target_;
  Product& out_;
  ZeroConditions zeros_{l_};
  std::optional<size_t> run_begin_;  ///< the first loop of the depth that is within a segment, if a is read in segments
  const Factor* raised_ = nullptr;   ///< the operand to whose elements 128 is added; null if there is none
  bool in_rows_ = false;             ///< b is packed row by row: its columns are several loops
  bool in_lines_ = false;            ///< a is packed in tiles of neighbouring rows, see is_in_lines
};

}  // namespace

MicroKernel Product::micro(int64_t tile, int64_t tile_columns) const {
  MicroKernel m;
  m.type = type;
  m.packs = packs;
  m.signed_a = signed_a;
  m.starts = starts();
  m.rows = static_cast<int>(tile);
  m.vectors = static_cast<int>((tile_columns + lanes - 1) / lanes);
  m.lanes = lanes;
  m.masked = tile_columns % lanes != 0;
  m.by_depth = a.row == 1 && a.depth != 1;
  m.segmented = !a.segments.empty();
  m.streams = b.streams || b.unhinted;
  return m;
}

Kernel panel_copy(const Product& product) {
  Kernel k;
  k.loops = {{product.depth}, {product.panel()}};
  k.outer = 2;
  k.buffers = 2;
  Expr load;
  load.op = ExprOp::kLoad;
  load.type = product.type;
  load.buffer = 0;
  load.index = add_scaled(loop_index(1), loop_index(0), product.b.depth);
  k.exprs.push_back(load);
  k.stores.push_back({1, 0, add_scaled(loop_index(1), loop_index(0), product.panel()), kNoExpr});
  return k;
}

std::vector<int64_t> offsets_of(const std::vector<std::pair<int64_t, int64_t>>& batch, int64_t first) {
  std::vector<int64_t> at{first};
  for (auto [extent, step] : batch) {
    std::vector<int64_t> next;
    next.reserve(at.size() * static_cast<size_t>(extent));
    for (int64_t x : at) {
      for (int64_t i = 0; i < extent; ++i) next.push_back(x + i * step);
    }
    at = std::move(next);
  }
  return at;
}

bool find_product(const KernelPlan& plan, const Graph& graph, const Target& target, Product& out, size_t batch_loops,
                  const ProductSchedule& by_hand, const char** why_not) {
  const auto refuse = [&](const char* why) {
    if (why_not) *why_not = why;
    return why == nullptr;
  };
  if (!find_contraction(plan.kernel)) {
    refuse(nullptr);
    return false;
  }
  Kernel collapsed = plan.kernel;
  collapse_loops(collapsed);
  if (can_unroll_and_jam(collapsed, target)) return refuse("its few rows are unrolled and jammed");
  out.by_hand = by_hand;
  return refuse(ProductPlanner(plan, graph, target, out).run(batch_loops));
}

bool takes_depth_block(const Product& p) {
  return p.a.depth_block == 0 && !p.b.streams && p.a.segments.empty();
}

std::string name_of(const MicroKernel& k) {
  static constexpr const char* kStarts[] = {"", "_starts", "_starts_rows"};
  return std::string(k.rows == 0 ? "fold_" : "micro_") + collet_type_name(k.type) + "x" + std::to_string(k.lanes) +
         "_" + std::to_string(k.rows) + "x" + std::to_string(k.vectors) + (k.masked ? "_masked" : "") +
         (k.by_depth ? "_by_depth" : "") + (k.accumulates ? "_accumulates" : "") + (k.segmented ? "_segmented" : "") +
         (k.streams ? "_streams" : "") + (k.fetches ? "_fetches" : "") + kStarts[static_cast<size_t>(k.starts)] +
         (k.packs > 1 ? "_of_" + std::to_string(k.packs) : "") + (k.signed_a ? "_signed" : "");
}

}  // namespace collet::codegen
