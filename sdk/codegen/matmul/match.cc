// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/matmul/matmul.h"

#include "sdk/codegen/lower/convolution.h"

#include <algorithm>
#include <numeric>

#include "sdk/codegen/kernel/transform.h"
#include "sdk/codegen/lower/kernel_builder.h"
#include "sdk/codegen/lower/kernel_rewriter.h"
#include "sdk/codegen/schedule/lanes.h"
#include "sdk/codegen/schedule/unroll_and_jam.h"

namespace collet::codegen {
namespace {

constexpr int64_t kMostSegments = 4096;
constexpr int64_t kMostBatches = 1 << 20;  ///< most batches: the plan stores three offsets for each
constexpr int kShortVector = 16;           ///< bytes of the shortest vector that is used

/// Loops, outermost first, that together count like one loop whose size is the product of theirs.
using Group = std::vector<size_t>;

int64_t extent(const Kernel& k, const Group& g) {
  int64_t n = 1;
  for (size_t l : g) n *= k.loops[l].size;
  return n;
}

/// Finds the step with which an index moves when the loops of a group count like one loop. Returns false if there is no
/// such step.
bool step_of(const Kernel& k, const Index& index, const Group& g, int64_t& step) {
  step = 0;
  int64_t inside = 1;
  bool first = true;
  for (size_t i = g.size(); i-- > 0;) {
    const int64_t size = k.loops[g[i]].size;
    if (size == 1) continue;
    const int64_t c = index.coefficient(g[i]);
    if (first) {
      step = c;
      first = false;
    } else if (c != step * inside) {
      return false;
    }
    inside *= size;
  }
  return true;
}

struct Side {
  ExprId value = kNoExpr;
  const Expr* load = nullptr;    ///< the load, if the value is a plain load; else null
  const Expr* source = nullptr;  ///< the load, if the value is a load or a conversion of one; else null
  const Expr* access = nullptr;  ///< like `source`, but the load may have a mask
  uint64_t deps = 0;
};

class Finder {
 public:
  Finder(const KernelPlan& plan, const Graph& graph, const Target& target, size_t batch_loops, Product& out)
      : plan_(plan), k_(plan.kernel), graph_(graph), target_(target), batch_loops_(batch_loops), out_(out) {}

  bool run() {
    if (!match() || !group()) return false;
    split_columns();
    if (!pack_neighbours() || !worthwhile()) return false;
    split_rows();
    find_zeros();
    split_depth();
    choose_tile();
    describe_loops();
    out_.type = type_;
    out_.result = plan_.buffers[store_->buffer];
    if (both_signed()) raised_ = &lhs_;
    operand_a();
    if (both_signed() && !out_.a.packed) raised_ = &rhs_;
    out_.signed_a = out_.packs == 4 && is_signed(lhs_) && raised_ != &lhs_;
    operand_b();
    if (raised_ == &rhs_) start_rows();
    set_parts();
    return true;
  }

 private:
  const Expr& at(ExprId t) const { return k_.exprs[static_cast<size_t>(t)]; }

  Side side(ExprId t, const std::vector<uint64_t>& deps) const {
    Side s;
    s.value = t;
    s.deps = deps[static_cast<size_t>(t)];
    const Expr& i = at(t);
    const bool converts = i.op == ExprOp::kOp && i.opcode == COLLET_OP_CONVERT;
    const Expr& e = converts ? at(i.args[0]) : i;
    if (e.op == ExprOp::kLoad && e.index.terms.empty()) s.access = &e;
    if (s.access && e.mask == kNoExpr) s.source = &e;
    if (!converts && i.type == type_) s.load = s.source;
    return s;
  }

  /// True if the kernel has a single store, of a single sum of products.
  bool match() {
    if (k_.reductions.size() != 1 || k_.stores.size() != 1 || !k_.updates.empty()) return false;
    store_ = &k_.stores[0];
    if (store_->mask != kNoExpr || !store_->index.terms.empty()) return false;
    const Expr& stored = at(store_->value);
    out_.converts = stored.op == ExprOp::kOp && stored.opcode == COLLET_OP_CONVERT;
    if ((out_.converts ? at(stored.args[0]) : stored).op != ExprOp::kReduced) return false;
    const Reduction& r = k_.reductions[0];
    if (r.combine != COLLET_COMBINE_ADD || r.inputs.size() != 1 || r.condition != kNoExpr) return false;
    if (r.inits[0] == kNoExpr) return false;
    type_ = r.types[0];
    const bool whole = type_ == COLLET_TYPE_S32;
    if (type_ != COLLET_TYPE_F32 && type_ != COLLET_TYPE_F64 && !whole) return false;
    const Expr& init = at(r.inits[0]);
    if (init.op != ExprOp::kConstant || (init.bits[0] << 1) != 0) return false;
    const Expr& product = at(r.inputs[0]);
    if (product.op != ExprOp::kOp || product.opcode != COLLET_OP_MULTIPLY) return false;
    if (whole && !(is_small(product.args[0]) && is_small(product.args[1]))) return false;
    if (k_.loops.size() > 60) return false;
    auto deps = loop_dependencies(k_);
    lhs_ = side(product.args[0], deps);
    rhs_ = side(product.args[1], deps);
    return true;
  }

  /// Returns the type that a value is converted from; 0 if it is not converted.
  uint32_t converted_from(ExprId t) const {
    const Expr& e = at(t);
    return e.op == ExprOp::kOp && e.opcode == COLLET_OP_CONVERT ? at(e.args[0]).type : 0;
  }

  /// True if expression `t` converts an integer of at most 8 bits to a wider one.
  bool is_small(ExprId t) const {
    const uint32_t from = converted_from(t);
    const uint32_t kind = collet_type_kind(from);
    return (kind == COLLET_KIND_SIGNED || kind == COLLET_KIND_UNSIGNED) && type_bits(from) <= 8;
  }

  bool is_signed(const Side& s) const { return collet_type_kind(converted_from(s.value)) == COLLET_KIND_SIGNED; }

  /// Packs as many neighbours along the depth into one element as an instruction of the target multiplies and adds at once. Returns false if
  /// the target has no such instruction and no other way to multiply the type.
  bool pack_neighbours() {
    const int64_t size = depth_.empty() ? 1 : k_.loops[depth_.back()].size;
    const auto is_bf16 = [&](const Side& s) { return converted_from(s.value) == COLLET_TYPE_BF16; };
    if (type_ == COLLET_TYPE_S32) {
      const bool quads = target_.int8_dot && size % 4 == 0 && !in_rows_ && (is_signed(lhs_) || is_signed(rhs_));
      out_.packs = quads ? 4 : 2;
      if (size % out_.packs != 0) return false;
    } else if (type_ == COLLET_TYPE_F32 && target_.bf16_dot && size % 2 == 0 && is_bf16(lhs_) && is_bf16(rhs_)) {
      out_.packs = 2;
    }
    if (out_.packs == 1) return true;
    k_.loops[depth_.back()].size /= out_.packs;
    out_.depth = extent(k_, depth_);
    if (pack_load(lhs_, wide_)) lhs_.load = &wide_;
    return true;
  }

  /// True if both operands have signed bytes. The instruction for four bytes takes unsigned bytes of one operand, so 128 is added to each
  /// element of one of those that are packed: `raised_`.
  bool both_signed() const { return out_.packs == 4 && is_signed(lhs_) && is_signed(rhs_); }

  /// Sets `out` to a load of a packed element, as s32. Returns false if its parts are not adjacent in memory.
  bool pack_load(const Side& s, Expr& out) const {
    if (!s.source || static_cast<int>(collet_type_bytes(s.source->type)) * out_.packs != 4) return false;
    if (type_bits(s.source->type) * out_.packs != 32) return false;
    out = *s.source;
    out.type = COLLET_TYPE_S32;
    if (out.index.coefficient(depth_.back()) != 1 || out.index.constant % out_.packs != 0) return false;
    out.index.constant /= out_.packs;
    for (size_t l = 0; l < out.index.coefficients.size(); ++l) {
      int64_t& c = out.index.coefficients[l];
      if (l == depth_.back()) continue;
      if (c % out_.packs != 0 && k_.loops[l].size > 1) return false;
      c /= out_.packs;
    }
    return true;
  }

  bool has(uint64_t set, size_t loop) const { return (set >> loop & 1) != 0; }

  /// Sorts the loops into rows, columns, depth and batches.
  bool group() {
    // The loop that is contiguous in the result belongs to the columns.
    size_t unit = k_.loops.size();
    for (size_t l = 0; l < k_.outer; ++l) {
      if (k_.loops[l].size > 1 && store_->index.coefficient(l) == 1) unit = l;
    }
    if (unit == k_.loops.size()) {  // there is one column, or no loop is contiguous
      for (size_t l = 0; l < k_.outer; ++l) {
        if (k_.loops[l].size > 1) return false;
      }
    }
    if (unit < k_.loops.size() && has(lhs_.deps, unit) && !has(rhs_.deps, unit)) std::swap(lhs_, rhs_);
    std::vector<size_t> loops;
    for (size_t l = 0; l < k_.outer; ++l) {
      if (k_.loops[l].size > 1) loops.push_back(l);
    }
    std::stable_sort(loops.begin(), loops.end(),
                     [&](size_t x, size_t y) { return store_->index.coefficient(x) > store_->index.coefficient(y); });
    int64_t next_column = 1;
    int64_t next_row = 0;
    for (size_t i = loops.size(); i-- > 0;) {
      const size_t l = loops[i];
      const int64_t c = store_->index.coefficient(l);
      const int64_t size = k_.loops[l].size;
      const bool in_lhs = has(lhs_.deps, l);
      const bool in_rhs = has(rhs_.deps, l);
      if (in_rhs && !in_lhs && c == next_column) {
        columns_.insert(columns_.begin(), l);
        next_column = c * size;
      } else if (l >= batch_loops_ && in_lhs && !in_rhs && (rows_.empty() || c == next_row)) {
        rows_.insert(rows_.begin(), l);
        if (next_row == 0) out_.ldc = c;
        next_row = c * size;
      } else {
        batch_.insert(batch_.begin(), l);
      }
    }
    for (size_t l = k_.outer; l < k_.loops.size(); ++l) {
      if (k_.loops[l].size == 1) continue;
      if (!has(lhs_.deps, l) || !has(rhs_.deps, l)) return false;
      depth_.push_back(l);
    }
    order_depth();
    out_.rows = extent(k_, rows_);
    out_.columns = extent(k_, columns_);
    out_.depth = extent(k_, depth_);
    if (rows_.empty()) out_.ldc = out_.columns;
    out_.c_offset = store_->index.constant;
    for (size_t l : batch_) out_.batch.emplace_back(k_.loops[l].size, store_->index.coefficient(l));
    return out_.rows > 0 && out_.columns > 0 && out_.depth > 0;
  }

  /// Orders the loops of the depth as an operand has them in memory, so that it can be read in place.
  void order_depth() {
    auto sorted_by = [&](const Side& s) {
      Group sorted = depth_;
      std::stable_sort(sorted.begin(), sorted.end(), [&](size_t x, size_t y) {
        return s.access->index.coefficient(x) > s.access->index.coefficient(y);
      });
      return sorted;
    };
    int64_t step = 0;
    int64_t column = 0;
    const Group right = rhs_.load ? sorted_by(rhs_) : depth_;
    const bool in_one = rhs_.load && step_of(k_, rhs_.load->index, right, step);
    if (in_one && step_of(k_, rhs_.load->index, columns_, column) && column == 1) {
      depth_ = right;
    } else if (lhs_.access) {
      depth_ = sorted_by(lhs_);
    } else if (in_one) {
      depth_ = right;
    }
  }

  /// Packs b row by row if its columns are several loops, because splitting a column number into loops would take divisions.
  void split_columns() {
    if (columns_.size() < 2) return;
    const size_t last = columns_.back();
    const int64_t size = k_.loops[last].size;
    const int64_t lanes = target_.vector_bits / (type_ == COLLET_TYPE_F64 ? 64 : 32);
    // Otherwise packing all columns costs less than the lanes of the last vector that no column uses.
    const bool fills = size * 8 > (size + lanes - 1) / lanes * lanes * 7;
    int64_t step = 0;
    if (rhs_.load && step_of(k_, rhs_.load->index, columns_, step)) return;
    in_rows_ = true;
    if (!fills || size < 3 * lanes) return;
    batch_.insert(batch_.end(), columns_.begin(), columns_.end() - 1);
    columns_ = {last};
    out_.columns = size;
    out_.batch.clear();
    for (size_t l : batch_) out_.batch.emplace_back(k_.loops[l].size, store_->index.coefficient(l));
  }

  /// If one distance does not lead from each row to the next, as for windows over an image, makes tiles of the rows of a line, and segments of
  /// the depth, within which distances are constant. So the operand is read in place.
  void split_rows() {
    int64_t row = 0;
    int64_t step = 0;
    // The sums of rows that overlap would take longer than to pack them.
    if (!lhs_.load || both_signed() || has_steps(row, step)) return;
    const Index& index = lhs_.load->index;
    size_t first = rows_.size();
    while (first > 0 && step_of(k_, index, Group(rows_.begin() + static_cast<int64_t>(first) - 1, rows_.end()), step)) {
      --first;
    }
    const Group line(rows_.begin() + static_cast<int64_t>(first), rows_.end());
    size_t run = depth_.size();
    int64_t length = 1;
    for (; run > 0; --run) {
      const Group longer(depth_.begin() + static_cast<int64_t>(run) - 1, depth_.end());
      if (!step_of(k_, index, longer, step) || step != 1) break;
      const int64_t size = extent(k_, longer);
      if (length >= target_.tuning.least_segment && size > target_.tuning.most_segment) break;
      length = size;
    }
    step_of(k_, index, line, step);
    if (clashes(step) && extent(k_, line) > target_.tuning.line_rows) return;
    if (!lines_suit(extent(k_, line), out_.depth * out_.columns)) return;
    if (extent(k_, line) < target_.tuning.line_rows || length < target_.tuning.least_segment ||
        out_.depth / length > kMostSegments)
      return;
    if (out_.batches() * (out_.rows / std::max<int64_t>(extent(k_, line), 1)) > kMostBatches) return;
    batch_.insert(batch_.end(), rows_.begin(), rows_.begin() + static_cast<int64_t>(first));
    rows_ = line;
    out_.rows = extent(k_, rows_);
    if (!rows_.empty()) out_.ldc = store_->index.coefficient(rows_.back());
    out_.batch.clear();
    for (size_t l : batch_) out_.batch.emplace_back(k_.loops[l].size, store_->index.coefficient(l));
    runs_ = run;
  }

  /// Finds conditions under which all elements of a row of `a` are zero in a step of the first loop of the depth: padding. They
  /// depend on the loops of the rows.
  void find_zeros() {
    if (both_signed() || depth_.size() < 2 || out_.batches() != 1) return;
    const ExprId mask = zero_unless(lhs_.value);
    if (mask != kNoExpr) add_conditions(mask);
  }

  /// Splits a loop of the depth, so that a block of the depth is a number of whole loops, see pack_depth_of_loops.
  void split_depth() {
    int64_t row = 0;
    int64_t step = 0;
    if (runs_ != SIZE_MAX || depth_.size() < 2 || lhs_.load == &wide_ || !is_deep() || pack_depth_of_loops() != 0)
      return;
    if (has_steps(row, step)) return;
    size_t i = depth_.size() - 1;
    int64_t steps = 1;
    while (i > 0 && steps * k_.loops[depth_[i]].size <= target_.tuning.most_packed_depth)
      steps *= k_.loops[depth_[i--]].size;
    const size_t loop = depth_[i];
    if (i == 0 && !conditions_.empty()) return;            // they depend on this loop
    if (i + 1 == depth_.size() && out_.packs > 1) return;  // it counts packed elements
    for (int64_t inside = std::min(target_.tuning.most_packed_depth / steps, k_.loops[loop].size / 2);
         inside * steps >= target_.tuning.least_packed_depth; --inside) {
      if (k_.loops[loop].size % inside != 0) continue;
      split_loop(k_, loop, inside);
      for (size_t& l : depth_) l += l > loop ? 1 : 0;
      depth_.insert(depth_.begin() + static_cast<int64_t>(i) + 1, loop + 1);
      return;
    }
  }

  /// Returns a condition such that expression `t` is zero where the condition is false, or kNoExpr.
  ExprId zero_unless(ExprId t) const {
    const Expr& e = at(t);
    if (e.op == ExprOp::kLoad) return e.mask;
    if (e.op != ExprOp::kOp) return kNoExpr;
    if (e.opcode == COLLET_OP_CONVERT) return zero_unless(e.args[0]);
    const auto is_zero = [](const Expr& x) { return x.op == ExprOp::kConstant && x.bits[0] == 0 && x.bits[1] == 0; };
    return e.opcode == COLLET_OP_SELECT && is_zero(at(e.args[2])) ? e.args[0] : kNoExpr;
  }

  void add_conditions(ExprId t) {
    const Expr& e = at(t);
    if (e.op == ExprOp::kOp && e.opcode == COLLET_OP_AND) {
      for (ExprId x : e.args) add_conditions(x);
    }
    if (e.op != ExprOp::kInRange || !e.index.terms.empty() || e.index.coefficient(depth_[0]) == 0) return;
    for (size_t l = 0; l < k_.loops.size(); ++l) {
      const bool used = l == depth_[0] || std::find(rows_.begin(), rows_.end(), l) != rows_.end();
      if (e.index.coefficient(l) != 0 && !used) return;
    }
    conditions_.push_back(&e);
  }

  /// Returns the number of adjacent rows for which the conditions are the same; 0 if there are no conditions.
  int64_t rows_together() const {
    if (conditions_.empty()) return 0;
    int64_t together = 1;
    for (size_t i = rows_.size(); i-- > 0; together *= k_.loops[rows_[i]].size) {
      for (const Expr* e : conditions_) {
        if (e->index.coefficient(rows_[i]) != 0) return together;
      }
    }
    return together;
  }

  void set_parts() {
    if (runs_ != SIZE_MAX) {
      if (plan_.zero_border && plan_.zero_border->value == out_.a.value && out_.packs == 1) parts_of_batches();
    } else if (!conditions_.empty() && out_.a.packed) {
      for (int64_t first = 0; first < out_.rows; first += out_.tile_rows)
        out_.a.parts_of_tiles.push_back(part_of(first, std::min(first + out_.tile_rows, out_.rows) - 1));
    }
  }

  /// Returns the steps of the depth in which one of the rows [first, last] may have elements other than zero; at least one step.
  std::pair<int64_t, int64_t> part_of(int64_t first, int64_t last) const {
    const int64_t steps = k_.loops[depth_[0]].size;
    int64_t begin = 0;
    int64_t end = steps;
    for (const Expr* e : conditions_) {
      int64_t least = e->index.constant;
      int64_t most = e->index.constant;
      int64_t inside = 1;
      for (size_t i = rows_.size(); i-- > 0;) {
        const int64_t size = k_.loops[rows_[i]].size;
        const int64_t c = e->index.coefficient(rows_[i]);
        const bool whole = last / inside - first / inside >= size || first / inside % size > last / inside % size;
        const int64_t from = whole ? 0 : first / inside % size;
        const int64_t to = whole ? size - 1 : last / inside % size;
        least += std::min(c * from, c * to);
        most += std::max(c * from, c * to);
        inside *= size;
      }
      const auto is_zero = [&](int64_t step) {
        const int64_t moved = e->index.coefficient(depth_[0]) * step;
        return most + moved < 0 || least + moved >= e->a;
      };
      while (begin + 1 < end && is_zero(begin)) ++begin;
      while (begin + 1 < end && is_zero(end - 1)) --end;
    }
    const int64_t inner = out_.depth / steps;
    return {begin * inner, end * inner};
  }

  /// Finds, for each batch, the segments of the depth that are in the border of zeros: the first ones and the last ones.
  void parts_of_batches() {
    ProductOperand& a = out_.a;
    const ZeroBorder& z = *plan_.zero_border;
    const int64_t reach = (out_.rows - 1) * a.row + a.run - 1;
    if (a.row < 0) return;
    bool any = false;
    for (int64_t place : offsets_of(a.batch, a.offset)) {
      const auto is_zero = [&](int64_t segment) {
        const int64_t from = place + a.segments[static_cast<size_t>(segment)];
        const int64_t to = from + reach;
        if (from < 0 || from / z.period != to / z.period) return false;
        return to % z.period / z.step < z.first || from % z.period / z.step >= z.first + z.count;
      };
      int64_t begin = 0;
      auto end = static_cast<int64_t>(a.segments.size());
      while (begin + 1 < end && is_zero(begin)) ++begin;
      while (begin + 1 < end && is_zero(end - 1)) --end;
      any = any || end - begin < static_cast<int64_t>(a.segments.size());
      a.parts_of_batches.emplace_back(begin, end);
    }
    if (!any) a.parts_of_batches.clear();
  }

  /// Records the loops for the epilogue.
  void describe_loops() {
    for (size_t l = 0; l < k_.outer; ++l) out_.dims.push_back(k_.loops[l].size);
    out_.batch_loops = batch_;
    out_.row_loops = rows_;
    out_.column_loops = columns_;
  }

  bool worthwhile() const {
    if (out_.batches() > kMostBatches) return false;
    const Tuning& t = target_.tuning;
    if (out_.columns < t.product_columns || out_.depth < t.product_depth) return false;
    if (out_.rows == 1 && !direct_b()) return false;  // each element of b is used once: packing it costs more
    if (out_.rows < t.packing_rows && !direct_b() && out_.depth * out_.columns > t.packed_b_elements) return false;
    return out_.rows * out_.columns * out_.depth * out_.batches() >= t.product_points;
  }

  bool direct_b() const {
    int64_t step = 0;
    int64_t column = 0;
    return rhs_.load && step_of(k_, rhs_.load->index, depth_, step) &&
           step_of(k_, rhs_.load->index, columns_, column) && column == 1;
  }

  void choose_tile() {
    const int bytes = type_ == COLLET_TYPE_F64 ? 8 : 4;
    out_.lanes = target_.vector_bits / 8 / bytes;
    // With few columns, shorter vectors are used, and more of them at a time.
    while (out_.lanes * bytes > kShortVector && out_.columns <= out_.lanes / 2) out_.lanes /= 2;
    const int64_t most = has_many_registers() ? kMostTileRows : 6;
    // Tiles within which the conditions do not change skip more of the depth; they must not be much smaller.
    const int64_t together = rows_together();
    const bool fits = out_.by_hand.tile_rows == 0 && together >= most / 2 && together <= most;
    const int64_t tiles = fits ? out_.rows / together : (out_.rows + most - 1) / most;
    out_.tile_rows = static_cast<int>((out_.rows + tiles - 1) / tiles);
    if (const int rows = rows_in_lines(most); !fits && rows > 0) out_.tile_rows = rows;
    if (out_.by_hand.tile_rows != 0)
      out_.tile_rows = static_cast<int>(std::min<int64_t>(out_.by_hand.tile_rows, out_.rows));
    in_lines_ = is_in_lines() && k_.loops[rows_.back()].size % out_.tile_rows == 0;
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

  /// Finds the distances in `a` from row to row and from step to step of the depth. Returns false if one of them varies.
  bool has_steps(int64_t& row, int64_t& step) const {
    return lhs_.load && step_of(k_, lhs_.load->index, rows_, row) && step_of(k_, lhs_.load->index, depth_, step);
  }

  /// True if `a` must be packed, and the rows of its innermost loop of rows are neighbours in memory, but not the steps of
  /// the depth.
  bool is_in_lines() const {
    if (!lhs_.access || runs_ != SIZE_MAX || rows_.empty() || depth_.empty()) return false;
    const Index& index = lhs_.access->index;
    int64_t row = 0;
    int64_t step = 0;
    const bool direct = has_steps(row, step) && (row == 1 || step == 1);
    return !direct && index.coefficient(rows_.back()) == 1 && index.coefficient(depth_.back()) != 1;
  }

  /// Returns the number of rows of a tile of whole lines of `a`, see is_in_lines; 0 if such tiles would be much smaller
  /// than `most` rows. Tiles without a narrower last panel come first.
  int rows_in_lines(int64_t most) const {
    if (!is_in_lines()) return 0;
    const int64_t needed = (out_.columns + out_.lanes - 1) / out_.lanes;
    int found = 0;
    for (auto rows = static_cast<int>(most); rows >= most / 2; --rows) {
      if (k_.loops[rows_.back()].size % rows != 0) continue;
      if (needed % vectors_of(rows) == 0) return rows;
      if (found == 0) found = rows;
    }
    return found;
  }

  /// Writes the variables of a group of loops as indices that depend on one linear index of a new kernel.
  void spread(KernelBuilder& builder, const Group& g, Index linear, std::vector<Index>& loops) const {
    Dims dims;
    for (size_t l : g) dims.push_back(k_.loops[l].size);
    Position p = builder.delinearize(std::move(linear), dims);
    for (size_t i = 0; i < g.size(); ++i) loops[g[i]] = p[i];
  }

  Group dependent(const Group& g, uint64_t deps) const {
    Group r;
    for (size_t l : g) {
      if (has(deps, l)) r.push_back(l);
    }
    return r;
  }

  /// Sets how many different matrices an operand has, and which one each batch uses.
  void batches_of(ProductOperand& o, uint64_t deps) const {
    Group used = dependent(batch_, deps);
    o.batches = extent(k_, used);
    int64_t step = o.batches;
    for (size_t l : batch_) {
      const int64_t size = k_.loops[l].size;
      if (has(deps, l)) {
        step /= size;
        o.batch_of.emplace_back(size, step);
      } else {
        o.batch_of.emplace_back(size, 0);
      }
    }
  }

  bool direct(ProductOperand& o, const Side& s, const Group& lines) const {
    if (!s.load) return false;
    const Index& index = s.load->index;
    if (!step_of(k_, index, depth_, o.depth) || !step_of(k_, index, lines, o.row)) return false;
    o.value = plan_.buffers[s.load->buffer];
    o.offset = index.constant;
    for (size_t l : batch_) o.batch.emplace_back(k_.loops[l].size, index.coefficient(l));
    return true;
  }

  /// True if cache lines that are `step` elements apart map to the same cache set.
  bool clashes(int64_t step) const {
    const int bytes = type_ == COLLET_TYPE_F64 ? 8 : 4;
    return step * bytes % (target_.cache_way / 2) == 0 && out_.depth > target_.tuning.clashing_depth;
  }

  /// Returns how many rows, `step` elements apart, keep their lines in the first cache at the same time. A quarter of the ways is left
  /// to the lines of b.
  int64_t lines_together(int64_t step) const {
    const int64_t bytes = step * (type_ == COLLET_TYPE_F64 ? 8 : 4);
    const int64_t ways = std::max<int64_t>(target_.first_cache / target_.cache_way * 3 / 4, 1);
    return ways * (target_.cache_way / std::gcd(bytes, target_.cache_way));
  }

  /// Makes the micro-kernel read `a` in segments of the depth, with one address for each segment.
  void in_segments(ProductOperand& a) {
    const Index& index = lhs_.load->index;
    const Group outside(depth_.begin(), depth_.begin() + static_cast<int64_t>(runs_));
    const Group run(depth_.begin() + static_cast<int64_t>(runs_), depth_.end());
    step_of(k_, index, rows_, a.row);
    a.depth = 1;
    a.tile = a.row * out_.tile_rows;
    a.run = extent(k_, run);
    a.value = plan_.buffers[lhs_.load->buffer];
    a.offset = index.constant;
    for (size_t l : batch_) a.batch.emplace_back(k_.loops[l].size, index.coefficient(l));
    a.segments = {0};
    for (size_t l : outside) {
      std::vector<int64_t> next;
      for (int64_t at : a.segments) {
        for (int64_t i = 0; i < k_.loops[l].size; ++i) next.push_back(at + i * index.coefficient(l));
      }
      a.segments = std::move(next);
    }
  }

  void operand_a() {
    ProductOperand& a = out_.a;
    if (runs_ != SIZE_MAX) return in_segments(a);
    if (direct(a, lhs_, rows_)) {
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
    pack_a(by_depth);
  }

  /// True if the second cache holds few rows of `a` of the whole depth.
  bool is_deep() const {
    const int64_t bytes = type_ == COLLET_TYPE_F64 ? 8 : 4;
    return out_.depth * bytes * target_.tuning.packed_b_rows >= target_.second_cache * 3 / 8;
  }

  /// Returns how many steps of the depth are packed at a time; 0 means all of them. With all steps of a deep product, the second cache would hold
  /// few rows, and all of b would be read for each few rows.
  int64_t pack_depth() const {
    if (out_.rows <= target_.tuning.far_tiles * out_.tile_rows || !is_deep()) return 0;
    if (depth_.size() > 1) return pack_depth_of_loops();
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
    for (size_t i = depth_.size(); i-- > 0;) {
      steps *= k_.loops[depth_[i]].size;
      if (steps > target_.tuning.most_packed_depth || steps == out_.depth) break;
      if (steps >= target_.tuning.least_packed_depth) best = steps;
    }
    return best;
  }

  /// Packs `a` row by row or, if neighbouring rows are neighbours in memory, in tiles of rows ordered by depth.
  void pack_a(bool by_depth) {
    ProductOperand& o = out_.a;
    o.packed = true;
    batches_of(o, lhs_.deps);
    const Group used = dependent(batch_, lhs_.deps);
    const int bytes = type_ == COLLET_TYPE_F64 ? 8 : 4;
    const int64_t line = target_.cache_line / bytes;
    o.depth_block = pack_depth();
    const int64_t blocks = o.depth_block == 0 ? 1 : (out_.depth + o.depth_block - 1) / o.depth_block;
    const int64_t depth = blocks == 1 ? out_.depth : o.depth_block;
    int64_t pitch = (depth + line - 1) / line * line;
    if (pitch / line % 2 == 0) pitch += line;
    const int64_t tile = out_.tile_rows;
    o.row = by_depth ? 1 : pitch;
    o.depth = by_depth ? tile : 1;
    o.tile = by_depth ? depth * tile : pitch * tile;
    o.pack_rows = by_depth ? tile : 1;
    Kernel& k = o.pack.kernel;
    const int64_t units = (out_.rows + o.pack_rows - 1) / o.pack_rows;
    k.loops.push_back({o.batches * blocks * units});
    // The loops of the depth from number `first` on are within a block, and those before it count the blocks.
    size_t first = 0;
    const bool cut = blocks > 1 && depth_.size() == 1;  // a block is a part of the one loop
    if (cut) {
      k.loops.push_back({depth});
    } else {
      if (blocks > 1) {
        for (int64_t steps = out_.depth; steps > depth; ++first) steps /= k_.loops[depth_[first]].size;
      }
      for (size_t i = first; i < depth_.size(); ++i) k.loops.push_back(k_.loops[depth_[i]]);
    }
    const size_t lane = k.loops.size();
    if (by_depth) k.loops.push_back({tile});
    k.outer = k.loops.size();
    KernelBuilder builder(graph_, k, [](ValueId) { return true; });
    std::vector<Index> loops(k_.loops.size());
    Index batch;
    Index block;
    Index unit;
    builder.divide(loop_index(0), units, batch, unit);
    if (blocks > 1) builder.divide(Index(batch), blocks, batch, block);
    spread(builder, used, batch, loops);
    ExprId mask = kNoExpr;
    if (in_lines_) {
      Dims units_of;
      for (size_t l : rows_) units_of.push_back(k_.loops[l].size);
      units_of.back() /= tile;
      const Position at = builder.delinearize(unit, units_of);
      for (size_t i = 0; i < rows_.size(); ++i) loops[rows_[i]] = at[i];
      loops[rows_.back()] = add_scaled(loop_index(lane), at[rows_.size() - 1], tile);
    } else {
      const Index row = by_depth ? add_scaled(loop_index(lane), unit, tile) : unit;
      if (by_depth) mask = builder.in_range(row, out_.rows);
      if (by_depth) builder.guard(mask);
      spread(builder, rows_, row, loops);
    }
    Index to = add_scaled({}, loop_index(0), by_depth ? o.tile : pitch);
    if (by_depth) to = add_scaled(to, loop_index(lane), 1);
    int64_t step = o.depth;
    spread(builder, Group(depth_.begin(), depth_.begin() + static_cast<int64_t>(first)), block, loops);
    for (size_t i = depth_.size(); i-- > first;) {
      const Index step_of_block = loop_index(1 + i - first);
      loops[depth_[i]] = cut ? add_scaled(step_of_block, block, depth) : step_of_block;
      to = add_scaled(to, step_of_block, step);
      step *= k_.loops[depth_[i]].size;
    }
    finish_pack(o, builder, lhs_, std::move(loops), to, mask);
  }

  void operand_b() {
    ProductOperand& b = out_.b;
    if (direct(b, rhs_, columns_) && (b.row == 1 || out_.columns == 1)) {
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
    b.packed = true;
    batches_of(b, rhs_.deps);
    if (in_rows_) {
      pack_rows_of_b();
    } else {
      pack_panels_of_b();
    }
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
    const int64_t bytes = type_ == COLLET_TYPE_F64 ? 8 : 4;
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
    const int64_t bytes = out_.depth * out_.columns * (type_ == COLLET_TYPE_F64 ? 8 : 4);
    const int64_t tiles = (rows + out_.tile_rows - 1) / out_.tile_rows;
    // With more tiles of rows, b must be larger for this to pay, because the result is loaded and stored for every few
    // rows of b.
    if (tiles > target_.tuning.far_tiles || runs_ != SIZE_MAX) return;
    out_.b.unhinted = rows <= target_.tuning.unhinted_rows;
    if (bytes < (rows == 1 ? target_.tuning.far_b_of_row : tiles * target_.tuning.near_caches) * target_.second_cache)
      return;
    if (out_.columns < 8 * out_.lanes || (out_.rows > 1 && out_.vectors >= target_.tuning.wide_tile)) return;
    out_.b.streams = true;
    // From memory, two cache lines of each row at a time are read fastest; from a cache, the widest tile.
    if (out_.rows > 1 || bytes > target_.tuning.far_caches * target_.second_cache)
      out_.vectors = std::min(out_.vectors, 2);
  }

  /// Packs b with all columns of a row side by side.
  void pack_rows_of_b() {
    ProductOperand& b = out_.b;
    const Group used = dependent(batch_, rhs_.deps);
    const int bytes = type_ == COLLET_TYPE_F64 ? 8 : 4;
    const int64_t line = target_.cache_line / bytes;
    int64_t pitch = (out_.columns + line - 1) / line * line;
    if (pitch * bytes % (target_.cache_way / 2) == 0) pitch += line;
    b.depth = pitch;
    b.row = 1;
    b.matrix = pitch * out_.depth;
    Kernel& k = b.pack.kernel;
    k.loops.push_back({b.batches});
    for (size_t l : depth_) k.loops.push_back(k_.loops[l]);
    for (size_t l : columns_) k.loops.push_back(k_.loops[l]);
    k.outer = k.loops.size();
    KernelBuilder builder(graph_, k, [](ValueId) { return true; });
    std::vector<Index> loops(k_.loops.size());
    spread(builder, used, loop_index(0), loops);
    Index to = add_scaled({}, loop_index(0), b.matrix);
    int64_t step = 1;
    size_t next = k.loops.size();
    for (const Group* group : {&columns_, &depth_}) {
      for (size_t i = group->size(); i-- > 0;) {
        loops[(*group)[i]] = loop_index(--next);
        to = add_scaled(to, loop_index(next), step);
        step *= k_.loops[(*group)[i]].size;
      }
      step = pitch;
    }
    finish_pack(b, builder, rhs_, std::move(loops), to, kNoExpr);
  }

  /// Packs b in panels of columns, as wide as a tile, each ordered by depth.
  void pack_panels_of_b() {
    ProductOperand& b = out_.b;
    const Group used = dependent(batch_, rhs_.deps);
    const int64_t width = out_.panel();
    const int64_t panels = (out_.columns + width - 1) / width;
    b.depth = width;
    b.row = 1;
    b.panels = true;
    const bool starts = raised_ == &lhs_;
    const int64_t panel_depth = out_.depth + (starts ? 1 : 0);
    b.matrix = panels * panel_depth * width;
    Kernel& k = b.pack.kernel;
    k.loops.push_back({b.batches * panels});
    for (size_t l : depth_) k.loops.push_back(k_.loops[l]);
    k.loops.push_back({width});
    k.outer = k.loops.size();
    KernelBuilder builder(graph_, k, [](ValueId) { return true; });
    std::vector<Index> loops(k_.loops.size());
    Index batch;
    Index panel;
    builder.divide(loop_index(0), panels, batch, panel);
    const size_t lane = depth_.size() + 1;
    Index column = add_scaled(loop_index(lane), panel, width);
    ExprId mask = builder.in_range(column, out_.columns);
    spread(builder, used, batch, loops);
    spread(builder, columns_, column, loops);
    Index to = add_scaled(loop_index(lane), loop_index(0), panel_depth * width);
    int64_t step = width;
    for (size_t i = depth_.size(); i-- > 0;) {
      loops[depth_[i]] = loop_index(1 + i);
      to = add_scaled(to, loop_index(1 + i), step);
      step *= k_.loops[depth_[i]].size;
    }
    builder.guard(mask);
    finish_pack(b, builder, rhs_, std::move(loops), to, mask);
    if (starts) start_panels(used, width, panels);
  }

  /// Adds the kernel that writes the initial values of the result's columns after each panel: -128 times the sum of
  /// each column of b, because 128 is added to a.
  void start_panels(const Group& used, int64_t width, int64_t panels) {
    Kernel& k = out_.b.start.kernel;
    k.loops = {{out_.b.batches * panels}, {width}};
    k.outer = k.loops.size();
    KernelBuilder builder(graph_, k, [](ValueId) { return true; });
    std::vector<Index> loops(k_.loops.size());
    Index batch;
    Index panel;
    builder.divide(loop_index(0), panels, batch, panel);
    const Index column = add_scaled(loop_index(1), panel, width);
    const ExprId mask = builder.in_range(column, out_.columns);
    spread(builder, used, batch, loops);
    spread(builder, columns_, column, loops);
    builder.guard(mask);
    Index to = add_scaled(loop_index(1), loop_index(0), (out_.depth + 1) * width);
    to.constant = out_.depth * width;
    store_starts(out_.b.start, builder, rhs_, std::move(loops), to);
  }

  /// Adds the kernel that writes the initial values of the result's rows: -128 times the sum of each row of a, because 128 is added to b.
  void start_rows() {
    ProductOperand& a = out_.a;
    batches_of(a, lhs_.deps);
    Kernel& k = a.start.kernel;
    k.loops = {{a.batches * out_.rows}};
    k.outer = 1;
    KernelBuilder builder(graph_, k, [](ValueId) { return true; });
    std::vector<Index> loops(k_.loops.size());
    Index batch;
    Index row;
    builder.divide(loop_index(0), out_.rows, batch, row);
    spread(builder, dependent(batch_, lhs_.deps), batch, loops);
    spread(builder, rows_, row, loops);
    store_starts(a.start, builder, lhs_, std::move(loops), loop_index(0));
  }

  /// Adds the loops of the depth to `plan`, and a store of -128 times the sum of `s` over them. Its last buffer is the one it writes.
  void store_starts(KernelPlan& plan, KernelBuilder& builder, const Side& s, std::vector<Index> loops,
                    const Index& to) {
    Kernel& k = plan.kernel;
    for (size_t l : depth_) {
      loops[l] = loop_index(k.loops.size());
      k.loops.push_back(plan_.kernel.loops[l]);
    }
    Reduction r;
    r.combine = COLLET_COMBINE_ADD;
    r.inputs = {KernelRewriter(k_, plan_.buffers, std::move(loops), builder, k).value(s.value)};
    r.inits = {builder.integer(type_, 0)};
    r.types = {type_};
    k.reductions.push_back(std::move(r));
    Expr sum;
    sum.op = ExprOp::kReduced;
    sum.type = type_;
    const ExprId start =
        builder.op(COLLET_OP_MULTIPLY, type_, {builder.emit(std::move(sum)), builder.integer(type_, -128)});
    plan.buffers = builder.buffers();
    k.stores.push_back({static_cast<uint32_t>(plan.buffers.size()), start, to, kNoExpr});
    plan.buffers.push_back(kNone);
    k.buffers = static_cast<uint32_t>(plan.buffers.size());
  }

  /// Returns a packed element, as s32, that is composed of its parts.
  ExprId packed(KernelBuilder& builder, const Side& s, std::vector<Index> loops, Kernel& to) const {
    constexpr uint32_t kBits = COLLET_TYPE_S32;
    const int width = 32 / out_.packs;
    const Index first = add_scaled({}, loops[depth_.back()], out_.packs);
    ExprId x = kNoExpr;
    for (int i = 0; i < out_.packs; ++i) {
      loops[depth_.back()] = first;
      loops[depth_.back()].constant += i;
      ExprId part = KernelRewriter(k_, plan_.buffers, loops, builder, to).value(s.value);
      if (type_ == COLLET_TYPE_F32) {  // the upper half of an f32 is the bf16
        part = builder.op(COLLET_OP_BITCAST_CONVERT, kBits, {part});
        part = builder.op(COLLET_OP_SHIFT_RIGHT_LOGICAL, kBits, {part, builder.integer(kBits, width)});
      }
      if (i + 1 < out_.packs)
        part = builder.op(COLLET_OP_AND, kBits, {part, builder.integer(kBits, (int64_t{1} << width) - 1)});
      if (i > 0) part = builder.op(COLLET_OP_SHIFT_LEFT, kBits, {part, builder.integer(kBits, i * width)});
      x = i == 0 ? part : builder.op(COLLET_OP_OR, kBits, {x, part});
    }
    return x;
  }

  void finish_pack(ProductOperand& o, KernelBuilder& builder, const Side& s, std::vector<Index> loops, const Index& to,
                   ExprId mask) {
    ExprId x = kNoExpr;
    Expr load;
    if (out_.packs > 1) {
      if (pack_load(s, load)) {
        load.buffer = builder.buffer(plan_.buffers[load.buffer]);
        load.index = KernelRewriter(k_, plan_.buffers, std::move(loops), builder, o.pack.kernel).index(load.index);
        load.mask = mask;
        x = builder.emit(std::move(load));
      } else {
        x = packed(builder, s, std::move(loops), o.pack.kernel);
      }
      if (&s == raised_)
        x = builder.op(COLLET_OP_XOR, COLLET_TYPE_S32, {x, builder.integer(COLLET_TYPE_S32, INT32_MIN | 0x00808080)});
    } else {
      KernelRewriter rewriter(k_, plan_.buffers, std::move(loops), builder, o.pack.kernel);
      x = builder.convert(rewriter.value(s.value), type_);
    }
    o.pack.buffers = builder.buffers();
    o.pack_output = static_cast<uint32_t>(o.pack.buffers.size());
    o.pack.buffers.push_back(kNone);
    o.pack.kernel.buffers = o.pack_output + 1;
    o.pack.kernel.stores.push_back({o.pack_output, x, to, kNoExpr});
  }

  const KernelPlan& plan_;
  Kernel k_;  ///< the kernel; once pack_neighbours has succeeded, its last loop of the depth counts packed elements
  const Graph& graph_;
  const Target& target_;
  const size_t batch_loops_;
  Product& out_;
  const Store* store_ = nullptr;
  uint32_t type_ = 0;
  Side lhs_;
  Side rhs_;
  Group rows_;
  Group columns_;
  Group depth_;
  Group batch_;
  size_t runs_ = SIZE_MAX;  ///< number of depth loops outside of a segment, if a is read in segments; else SIZE_MAX
  Expr wide_;               ///< the load of packed elements of a
  const Side* raised_ = nullptr;  ///< the operand to whose elements 128 is added; null if there is none
  /// Conditions without which `a` is zero: see find_zeros.
  std::vector<const Expr*> conditions_;
  bool in_rows_ = false;   ///< b is packed row by row: its columns are several loops
  bool in_lines_ = false;  ///< a is packed in tiles of neighbouring rows, see is_in_lines
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
                  const ProductSchedule& by_hand) {
  const auto fits = [](const ProductOperand& o) { return !o.packed || o.pack.buffers.size() <= kMostPackBuffers; };
  if (plan.kernel.reductions.size() != 1) return false;
  Kernel collapsed = plan.kernel;
  collapse_loops(collapsed);
  if (can_unroll_and_jam(collapsed, target)) return false;
  out.by_hand = by_hand;
  return Finder(plan, graph, target, batch_loops, out).run() && fits(out.a) && fits(out.b);
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
