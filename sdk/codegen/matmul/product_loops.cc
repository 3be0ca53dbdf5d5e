// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/matmul/product_loops.h"

#include <collet/codegen/kernel_contraction.h>
#include <collet/codegen/kernel_transform.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "sdk/codegen/base/element_type.h"

namespace collet::codegen {

int64_t ProductLoops::extent(const LoopGroup& group) const {
  int64_t n = 1;
  for (size_t l : group) n *= size(l);
  return n;
}

bool ProductLoops::step_of(const Index& index, const LoopGroup& group, int64_t& step) const {
  step = 0;
  int64_t inside = 1;
  bool first = true;
  for (size_t i = group.size(); i-- > 0;) {
    if (size(group[i]) == 1) continue;
    const int64_t c = index.coefficient(group[i]);
    if (first) {
      step = c;
      first = false;
    } else if (c != step * inside) {
      return false;
    }
    inside *= size(group[i]);
  }
  return true;
}

bool ProductLoops::steps_of_a(int64_t& row, int64_t& step) const {
  return a.load && step_of(a.load->index, rows, row) && step_of(a.load->index, depth, step);
}

bool ProductLoops::reads_b_in_place() const {
  int64_t step = 0;
  int64_t column = 0;
  return b.load && step_of(b.load->index, depth, step) && step_of(b.load->index, columns, column) && column == 1;
}

bool ProductLoops::reads_b_in_windows() const {
  if (!b.access || columns.empty()) return false;
  const Index& index = b.access->index;
  if (index.coefficient(columns.back()) != 1) return true;
  return std::any_of(columns.begin(), columns.end(), [&](size_t column) {
    return std::any_of(depth.begin(), depth.end(), [&](size_t d) {
      return windows_share(index.coefficient(column), index.coefficient(d), size(d));
    });
  });
}

uint32_t ProductLoops::converted_from(ExprId t) const {
  const ExprId from = before_conversion(kernel, t, at(t).type);
  return from == t ? 0 : at(from).type;
}

/// True if expression `t` converts an integer of at most 8 bits to a wider one.
bool ProductLoops::is_small_integer(ExprId t) const {
  const uint32_t from = converted_from(t);
  const uint32_t kind = collet_type_kind(from);
  return (kind == COLLET_KIND_SIGNED || kind == COLLET_KIND_UNSIGNED) && type_bits(from) <= 8;
}

Factor ProductLoops::factor(ExprId value, uint64_t loops) const {
  Factor f;
  f.value = value;
  f.loops = loops;
  const ExprId from = before_conversion(kernel, value, at(value).type);
  const Expr& e = at(from);
  if (e.op == ExprOp::kLoad && e.index.terms.empty()) f.access = &e;
  f.source = plain_load(kernel, from);
  if (from == value && e.type == type) f.load = f.source;
  return f;
}

bool ProductLoops::find(size_t batch_loops) {
  const std::optional<Contraction> found = find_contraction(kernel);
  if (!found || !found->from_zero || !stores_sum(kernel)) return false;
  type = found->type();
  if (type != COLLET_TYPE_F32 && type != COLLET_TYPE_F64 && type != COLLET_TYPE_S32) return false;
  if (type == COLLET_TYPE_S32 && !(is_small_integer(found->a) && is_small_integer(found->b))) return false;
  converts = at(store().value).op != ExprOp::kReduced;
  a = factor(found->a, found->of_a);
  b = factor(found->b, found->of_b);
  return sort_loops(batch_loops);
}

/// Sorts the loops into rows, columns, depth and batches.
bool ProductLoops::sort_loops(size_t batch_loops) {
  const Index& index = store().index;
  // The loop that is contiguous in the result belongs to the columns.
  size_t unit = kernel.loops.size();
  for (size_t l = 0; l < kernel.outer; ++l) {
    if (size(l) > 1 && index.coefficient(l) == 1) unit = l;
  }
  if (unit == kernel.loops.size()) {  // there is one column, or no loop is contiguous
    for (size_t l = 0; l < kernel.outer; ++l) {
      if (size(l) > 1) return false;
    }
  }
  if (unit < kernel.loops.size() && a.depends_on(unit) && !b.depends_on(unit)) std::swap(a, b);
  LoopGroup loops;
  for (size_t l = 0; l < kernel.outer; ++l) {
    if (size(l) > 1) loops.push_back(l);
  }
  std::stable_sort(loops.begin(), loops.end(),
                   [&](size_t x, size_t y) { return index.coefficient(x) > index.coefficient(y); });
  int64_t next_column = 1;
  int64_t next_row = 0;
  for (size_t i = loops.size(); i-- > 0;) {
    const size_t l = loops[i];
    const int64_t c = index.coefficient(l);
    if (b.depends_on(l) && !a.depends_on(l) && c == next_column) {
      columns.insert(columns.begin(), l);
      next_column = c * size(l);
    } else if (l >= batch_loops && a.depends_on(l) && !b.depends_on(l) && (rows.empty() || c == next_row)) {
      rows.insert(rows.begin(), l);
      next_row = c * size(l);
    } else {
      batch.insert(batch.begin(), l);
    }
  }
  for (size_t l = kernel.outer; l < kernel.loops.size(); ++l) {
    if (size(l) == 1) continue;
    if (!a.depends_on(l) || !b.depends_on(l)) return false;
    depth.push_back(l);
  }
  order_depth();
  return extent(rows) > 0 && extent(columns) > 0 && extent(depth) > 0;
}

/// Orders the loops of the depth as an operand has them in memory, so that it can be read in place.
void ProductLoops::order_depth() {
  const auto sorted_by = [&](const Factor& f) {
    LoopGroup sorted = depth;
    std::stable_sort(sorted.begin(), sorted.end(), [&](size_t x, size_t y) {
      return f.access->index.coefficient(x) > f.access->index.coefficient(y);
    });
    return sorted;
  };
  int64_t step = 0;
  int64_t column = 0;
  const LoopGroup right = b.load ? sorted_by(b) : depth;
  const bool in_one = b.load && step_of(b.load->index, right, step);
  if (in_one && step_of(b.load->index, columns, column) && column == 1) {
    depth = right;
  } else if (a.access) {
    depth = sorted_by(a);
  } else if (in_one) {
    depth = right;
  }
}

void ProductLoops::pack_neighbours(int count) {
  parts = count;
  kernel.loops[depth.back()].size /= parts;
  if (packed_load(a, packed_)) a.load = &packed_;
}

bool ProductLoops::packed_load(const Factor& f, Expr& out) const {
  if (!f.source || static_cast<int>(collet_type_bytes(f.source->type)) * parts != 4) return false;
  if (type_bits(f.source->type) * parts != 32) return false;
  out = *f.source;
  out.type = COLLET_TYPE_S32;
  if (out.index.coefficient(depth.back()) != 1 || out.index.constant % parts != 0) return false;
  out.index.constant /= parts;
  for (size_t l = 0; l < out.index.coefficients.size(); ++l) {
    int64_t& c = out.index.coefficients[l];
    if (l == depth.back()) continue;
    if (c % parts != 0 && size(l) > 1) return false;
    c /= parts;
  }
  return true;
}

void ProductLoops::keep_last_column() {
  batch.insert(batch.end(), columns.begin(), columns.end() - 1);
  columns = {columns.back()};
}

void ProductLoops::move_rows_to_batch(size_t count) {
  const auto end = rows.begin() + static_cast<ptrdiff_t>(count);
  batch.insert(batch.end(), rows.begin(), end);
  rows.erase(rows.begin(), end);
}

void ProductLoops::split_depth(size_t number, int64_t inside) {
  const size_t loop = depth[number];
  split_loop(kernel, loop, inside);
  for (size_t& l : depth) l += l > loop ? 1 : 0;
  depth.insert(depth.begin() + static_cast<ptrdiff_t>(number) + 1, loop + 1);
}

LoopGroup ProductLoops::loops_of(const LoopGroup& group, const Factor& f) const {
  LoopGroup out;
  for (size_t l : group) {
    if (f.depends_on(l)) out.push_back(l);
  }
  return out;
}

}  // namespace collet::codegen
