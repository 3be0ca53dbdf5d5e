// SPDX-License-Identifier: Apache-2.0
// Writes kernels for work-items that are scheduled as a grid: those of OpenCL C.

#include <collet/codegen/kernel_transform.h>
#include <collet/types.h>

#include <algorithm>

#include "sdk/codegen/kernel/loop_sets.h"
#include "sdk/codegen/source/kernel_text.h"

namespace collet::codegen::source {
namespace {

/// Steps of the depth whose products are added in one accumulator of a tile.
constexpr int64_t kBlockDepth = 128;

std::string text(int64_t x) {
  return text_of_integer(x);
}

}  // namespace

void KernelWriter::run_grid(const GridSchedule& schedule, const std::vector<std::string>& places) {
  in_grid_ = true;
  declare_buffers([&](uint32_t number) { return places[number]; });
  compute(0, 0);
  switch (schedule.form) {
    case GridSchedule::Form::kRows:
      if (!schedule.in_order && !k_.scan) return rows(schedule);
      break;
    case GridSchedule::Form::kTiles:
      return tiles(schedule);
    default:
      break;
  }
  points(schedule);
}

void KernelWriter::set_loops(uint64_t loops, const std::string& point) {
  int64_t stride = points_of(k_, loops);
  for (size_t l = 0; l < k_.loops.size(); ++l) {
    if ((loops >> l & 1) == 0) continue;
    const int64_t size = k_.loops[l].size;
    const bool is_first = stride == points_of(k_, loops);
    stride /= size;
    if (size == 1) {
      loops_[l] = "0";
      continue;
    }
    const std::string i = "i" + std::to_string(l);
    const std::string above = stride == 1 ? point : point + " / " + text(stride);
    if (above != i) f_.statement("const int64_t " + i + " = " + above + (is_first ? ";" : " % " + text(size) + ";"));
    loops_[l] = i;
  }
}

void KernelWriter::each_point(uint64_t loops, const std::string& first, const std::string& end, const std::string& step,
                              const std::function<void()>& body) {
  // The variable of the only loop, or the number of the point.
  std::string name;
  int longer = 0;
  for (size_t l = 0; l < k_.loops.size(); ++l) {
    if ((loops >> l & 1) == 0 || k_.loops[l].size == 1) continue;
    name = "i" + std::to_string(l);
    ++longer;
  }
  if (longer != 1) name = f_.fresh("point");
  f_.open("for (int64_t " + name + " = " + first + "; " + name + " < " + end + "; " + name + " += " + step + ")");
  set_loops(loops, name);
  body();
  f_.close();
}

void KernelWriter::points(const GridSchedule& schedule) {
  parallel_ = schedule.parallel;
  each_point(parallel_, "get_global_id(0)", text(points_of(k_, parallel_)), "get_global_size(0)", [&] { nest(0); });
}

// Rows: the work-items of a group share the inner loops of a point of the outer loops.

void KernelWriter::rows(const GridSchedule& schedule) {
  group_ = schedule.group;
  for (size_t r = 0; r < k_.reductions.size(); ++r) {
    if (!used_[r]) continue;
    const uint32_t type = k_.reductions[r].types[0];
    const std::string name = "shared" + std::to_string(r), size = "[" + text(group_) + "]";
    f_.statement("__local " + value_type(type) + " " + name + size +
                 (collet_type_kind(type) == COLLET_KIND_COMPLEX ? ", " + name + "_im" + size : "") + ";");
  }
  f_.statement("const int64_t own = get_local_id(0);");
  const std::string all = text(points_of(k_, outer_loops(k_)));
  each_point(outer_loops(k_), "get_group_id(0)", all, "get_num_groups(0)", [&] {
    for (size_t l = 0; l < k_.outer; ++l) compute(l + 1, 0);
    for (int p = 0; p <= passes_.last(); ++p) {
      if (p > 0) compute(k_.outer, p);
      row_pass(p);
    }
    const auto is_outer = [&](const Store& s) { return !passes_.is_inner(s); };
    if (std::none_of(k_.stores.begin(), k_.stores.end(), is_outer)) return;
    f_.open("if (own == 0)");
    for (const Store& s : k_.stores) {
      if (is_outer(s)) store(s);
    }
    f_.close();
  });
}

void KernelWriter::row_pass(int number) {
  find_reductions_of(number);
  if (reductions_.empty() && !stores_in(number)) return;
  for (const size_t r : reductions_) declare_accumulators(r);
  const auto inner = [&](const std::string& from, const std::string& to) {
    each_point(codegen::inner_loops(k_), from, to, text(group_), [&] {
      for (size_t level = k_.outer + 1; level <= k_.loops.size(); ++level) compute_for_pass(level, number);
      inner_point(number);
    });
  };
  const std::string all = text(inner_points(k_));
  if (!reductions_.empty() && blocks_.loop != SIZE_MAX) {
    const std::string k = f_.fresh("k"), steps = text(blocks_.steps);
    f_.open("for (int64_t " + k + " = own; " + k + " < " + all + "; " + k + " += " + steps + ")");
    inner(k, "min(" + k + " + " + steps + ", (int64_t)" + all + ")");
    add_blocks();
    f_.close();
  } else {
    inner("own", all);
  }
  if (reductions_.empty()) return;
  for (const size_t r : reductions_) {
    for (Accumulator& a : accumulators_[r]) {
      if (a.blocks) write(a, read(a, true));
      a.blocks = false;
    }
  }
  // Adds the upper half of the group's results to the lower one.
  const auto shared_of = [&](size_t r, const std::string& at) {
    Accumulator shared = accumulators_[r][0];
    const std::string name = "shared" + std::to_string(r);
    for (size_t part = 0; part < shared.names.size(); ++part)
      shared.names[part] = name + (part == 0 ? "[" : "_im[") + at + "]";
    return shared;
  };
  for (const size_t r : reductions_) write(shared_of(r, "own"), read(accumulators_[r][0]));
  barrier();
  f_.open("for (int64_t upper = " + text(group_ / 2) + "; upper > 0; upper /= 2)");
  f_.open("if (own < upper)");
  for (const size_t r : reductions_) {
    const Accumulator lower = shared_of(r, "own");
    write(lower, combine(f_, k_.reductions[r].combine, lower.type, read(lower), read(shared_of(r, "own + upper"))));
  }
  f_.close();
  barrier();
  f_.close();
  for (const size_t r : reductions_) write(accumulators_[r][0], read(shared_of(r, "0")));
  barrier();
  for (const size_t r : reductions_) finish(r);
}

// Tiles: a group computes a part of a product of matrices.

Val KernelWriter::value_at(ExprId wanted) {
  std::vector<bool> needed(k_.exprs.size(), false);
  needed[static_cast<size_t>(wanted)] = true;
  for (size_t k = k_.exprs.size(); k-- > 0;) {
    if (!needed[k]) continue;
    const Expr& e = k_.exprs[k];
    for (const ExprId a : e.args) needed[static_cast<size_t>(a)] = true;
    for (const auto& term : e.index.terms) needed[static_cast<size_t>(term.first)] = true;
    if (e.mask != kNoExpr) needed[static_cast<size_t>(e.mask)] = true;
  }
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    if (needed[k]) vals_[k] = expr(k_.exprs, k, vals_, nullptr);
  }
  return val(wanted);
}

void KernelWriter::tile_operand(const TileOperand& o, const std::string& name, int64_t length, int64_t round,
                                int64_t threads) {
  const std::string steps = text(round), lines = text(length);
  f_.open("for (int64_t e = own; e < " + text(length * round) + "; e += " + text(threads) + ")");
  // Neighbours read what is adjacent in memory.
  f_.statement(o.by_depth ? "const int64_t r = e / " + steps + ", d = e % " + steps + ";"
                          : "const int64_t r = e % " + lines + ", d = e / " + lines + ";");
  f_.statement("const int64_t line = first_" + name + " + r, depth = first_depth + d;");
  f_.statement(value_type(at(o.value).type) + " x = 0;");
  f_.open("if (line < " + text(o.count) + " && depth < " + text(o.depth) + ")");
  set_loops(o.loops, "line");
  set_loops(o.depth_loops, "depth");
  const std::vector<Val> outside = vals_;  // what has a name in this block has none behind it
  f_.statement("x = $a0;", {value_at(o.value).v});
  vals_ = outside;
  f_.close();
  f_.statement(name + "[d][r] = x;");
  f_.close();
}

void KernelWriter::tiles(const GridSchedule& schedule) {
  const TileSchedule& t = schedule.tiles;
  const TileShape& shape = t.shape;
  const Reduction& r = k_.reductions[0];
  const uint32_t type = r.types[0];
  const std::string of = value_type(type);
  const int64_t threads = schedule.block_threads, round = t.round;
  const int64_t across = shape.columns / shape.part_columns, down = shape.rows / shape.part_rows;
  const bool in_blocks = collet_type_kind(type) == COLLET_KIND_FLOAT && t.depth >= 2 * kBlockDepth;
  const std::string sums = "[" + text(shape.part_rows) + "][" + text(shape.part_columns) + "]";
  const auto tile = [&](const char* name, int64_t length) {
    // One element more, so that those of a column are in different banks.
    f_.statement("__local " + of + " " + name + "[" + text(round) + "][" + text(length + 1) + "];");
  };
  const auto each_sum = [&](const std::function<void()>& body) {
    f_.statement("UNROLL");
    f_.open("for (int i = 0; i < " + text(shape.part_rows) + "; ++i)");
    f_.statement("UNROLL");
    f_.open("for (int j = 0; j < " + text(shape.part_columns) + "; ++j)");
    body();
    f_.close();
    f_.close();
  };
  tile("rows", shape.rows);
  tile("columns", shape.columns);
  f_.statement("const int64_t own = get_local_id(0), own_row = own / " + text(across) + ", own_column = own % " +
               text(across) + ";");
  f_.open("for (int64_t tile = get_group_id(0); tile < " + text(t.tiles()) + "; tile += get_num_groups(0))");
  f_.statement("const int64_t first_columns = tile % " + text(t.column_tiles()) + " * " + text(shape.columns) + ";");
  f_.statement("const int64_t above = tile / " + text(t.column_tiles()) + ";");
  f_.statement("const int64_t first_rows = above % " + text(t.row_tiles()) + " * " + text(shape.rows) + ";");
  if (t.batch_count > 1) f_.statement("const int64_t batch = above / " + text(t.row_tiles()) + ";");
  set_loops(t.batch, "batch");
  f_.statement(of + " sum" + sums + (in_blocks ? ", total" + sums : "") + ";");
  each_sum([&] {
    f_.statement("sum[i][j] = 0;");
    if (in_blocks) f_.statement("total[i][j] = 0;");
  });
  f_.open("for (int64_t first_depth = 0; first_depth < " + text(t.depth) + "; first_depth += " + text(round) + ")");
  tile_operand(t.a, "rows", shape.rows, round, threads);
  tile_operand(t.b, "columns", shape.columns, round, threads);
  barrier();
  f_.open("for (int d = 0; d < " + text(round) + "; ++d)");
  each_sum([&] {
    const std::string x = "rows[d][i * " + text(down) + " + own_row]";
    const std::string y = "columns[d][j * " + text(across) + " + own_column]";
    const bool fuses = f_.unit.target.fma && (type == COLLET_TYPE_F32 || (type == COLLET_TYPE_F64 && r.contract));
    if (fuses) return f_.statement("sum[i][j] = fma(" + x + ", " + y + ", sum[i][j]);");
    vals_[static_cast<size_t>(t.a.value)] = {f_.variable(of, x)};
    vals_[static_cast<size_t>(t.b.value)] = {f_.variable(of, y)};
    const auto product = static_cast<size_t>(r.inputs[0]);
    const Val sum =
        combine(f_, r.combine, type, {f_.variable(of, "sum[i][j]")}, expr(k_.exprs, product, vals_, nullptr));
    f_.statement("sum[i][j] = $a0;", {sum.v});
  });
  f_.close();
  barrier();
  if (in_blocks) {
    f_.open("if (first_depth % " + text(kBlockDepth) + " == " + text(kBlockDepth - round) + ")");
    each_sum([&] {
      f_.statement("total[i][j] += sum[i][j];");
      f_.statement("sum[i][j] = 0;");
    });
    f_.close();
  }
  f_.close();
  each_sum([&] {
    f_.statement("const int64_t row = first_rows + i * " + text(down) + " + own_row;");
    f_.statement("const int64_t column = first_columns + j * " + text(across) + " + own_column;");
    f_.open("if (row < " + text(t.a.count) + " && column < " + text(t.b.count) + ")");
    set_loops(t.a.loops, "row");
    set_loops(t.b.loops, "column");
    for (size_t l = 0; l < k_.outer; ++l) compute(l + 1, 0);
    const Id sum = f_.value(of, in_blocks ? "total[i][j] + sum[i][j]" : "sum[i][j]", {},
                            in_blocks ? Level::kSum : Level::kPrimary, true);
    reduced_[0] = {finished(r, type, {sum})};
    compute(k_.outer, 1);
    for (const Store& s : k_.stores) store(s);
    f_.close();
  });
  f_.close();
}

}  // namespace collet::codegen::source
