// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/matmul/operand_packer.h"

#include <utility>
#include <vector>

#include "sdk/codegen/lower/kernel_rewriter.h"

namespace collet::codegen {

/// Writes the variables of a group of loops as indices that depend on one linear index of a new kernel.
void OperandPacker::spread(KernelBuilder& builder, const LoopGroup& group, Index linear,
                           std::vector<Index>& loops) const {
  Dims dims;
  for (size_t l : group) dims.push_back(l_.size(l));
  Position p = builder.delinearize(std::move(linear), dims);
  for (size_t i = 0; i < group.size(); ++i) loops[group[i]] = p[i];
}

/// Sets how many different matrices an operand has, and which one each batch uses.
void OperandPacker::count_matrices(ProductOperand& o, const Factor& f) const {
  o.batches = l_.extent(l_.loops_of(l_.batch, f));
  int64_t step = o.batches;
  for (size_t l : l_.batch) {
    const bool used = f.depends_on(l);
    if (used) step /= l_.size(l);
    o.batch_of.emplace_back(l_.size(l), used ? step : 0);
  }
}

void OperandPacker::pack_a(const PackedRows& order, ProductOperand& o) const {
  o.packed = true;
  count_matrices(o, l_.a);
  o.depth_block = order.depth_block;
  const int64_t blocks = o.depth_block == 0 ? 1 : (p_.depth + o.depth_block - 1) / o.depth_block;
  const int64_t depth = blocks == 1 ? p_.depth : o.depth_block;
  int64_t pitch = (depth + line() - 1) / line() * line();
  if (pitch / line() % 2 == 0) pitch += line();
  const int64_t tile = p_.tile_rows;
  o.row = order.by_depth ? 1 : pitch;
  o.depth = order.by_depth ? tile : 1;
  o.tile = order.by_depth ? depth * tile : pitch * tile;
  o.pack_rows = order.by_depth ? tile : 1;
  Kernel& k = o.pack.kernel;
  const int64_t units = (p_.rows + o.pack_rows - 1) / o.pack_rows;
  k.loops.push_back({o.batches * blocks * units});
  // The loops of the depth from number `first` on are within a block, and those before it count the blocks.
  size_t first = 0;
  const bool cut = blocks > 1 && l_.depth.size() == 1;  // a block is a part of the one loop
  if (cut) {
    k.loops.push_back({depth});
  } else {
    if (blocks > 1) {
      for (int64_t steps = p_.depth; steps > depth; ++first) steps /= l_.size(l_.depth[first]);
    }
    for (size_t i = first; i < l_.depth.size(); ++i) k.loops.push_back(l_.kernel.loops[l_.depth[i]]);
  }
  const size_t lane = k.loops.size();
  if (order.by_depth) k.loops.push_back({tile});
  k.outer = k.loops.size();
  KernelBuilder builder(graph_, k, [](ValueId) { return true; });
  std::vector<Index> loops(l_.kernel.loops.size());
  Index batch;
  Index block;
  Index unit;
  builder.divide(loop_index(0), units, batch, unit);
  if (blocks > 1) builder.divide(Index(batch), blocks, batch, block);
  spread(builder, l_.loops_of(l_.batch, l_.a), batch, loops);
  ExprId mask = kNoExpr;
  if (order.in_lines) {
    Dims units_of;
    for (size_t l : l_.rows) units_of.push_back(l_.size(l));
    units_of.back() /= tile;
    const Position at = builder.delinearize(unit, units_of);
    for (size_t i = 0; i < l_.rows.size(); ++i) loops[l_.rows[i]] = at[i];
    loops[l_.rows.back()] = add_scaled(loop_index(lane), at[l_.rows.size() - 1], tile);
  } else {
    const Index row = order.by_depth ? add_scaled(loop_index(lane), unit, tile) : unit;
    if (order.by_depth) mask = builder.in_range(row, p_.rows);
    if (order.by_depth) builder.guard(mask);
    spread(builder, l_.rows, row, loops);
  }
  Index to = add_scaled({}, loop_index(0), order.by_depth ? o.tile : pitch);
  if (order.by_depth) to = add_scaled(to, loop_index(lane), 1);
  int64_t step = o.depth;
  spread(builder, LoopGroup(l_.depth.begin(), l_.depth.begin() + static_cast<ptrdiff_t>(first)), block, loops);
  for (size_t i = l_.depth.size(); i-- > first;) {
    const Index step_of_block = loop_index(1 + i - first);
    loops[l_.depth[i]] = cut ? add_scaled(step_of_block, block, depth) : step_of_block;
    to = add_scaled(to, step_of_block, step);
    step *= l_.size(l_.depth[i]);
  }
  finish(o, builder, l_.a, std::move(loops), to, mask);
}

void OperandPacker::pack_rows_of_b(ProductOperand& b) const {
  b.packed = true;
  count_matrices(b, l_.b);
  int64_t pitch = (p_.columns + line() - 1) / line() * line();
  if (pitch * l_.element_bytes() % (target_.cache_way / 2) == 0) pitch += line();
  b.depth = pitch;
  b.row = 1;
  b.matrix = pitch * p_.depth;
  Kernel& k = b.pack.kernel;
  k.loops.push_back({b.batches});
  for (size_t l : l_.depth) k.loops.push_back(l_.kernel.loops[l]);
  for (size_t l : l_.columns) k.loops.push_back(l_.kernel.loops[l]);
  k.outer = k.loops.size();
  KernelBuilder builder(graph_, k, [](ValueId) { return true; });
  std::vector<Index> loops(l_.kernel.loops.size());
  spread(builder, l_.loops_of(l_.batch, l_.b), loop_index(0), loops);
  Index to = add_scaled({}, loop_index(0), b.matrix);
  int64_t step = 1;
  size_t next = k.loops.size();
  for (const LoopGroup* group : {&l_.columns, &l_.depth}) {
    for (size_t i = group->size(); i-- > 0;) {
      loops[(*group)[i]] = loop_index(--next);
      to = add_scaled(to, loop_index(next), step);
      step *= l_.size((*group)[i]);
    }
    step = pitch;
  }
  finish(b, builder, l_.b, std::move(loops), to, kNoExpr);
}

void OperandPacker::pack_panels_of_b(ProductOperand& b) const {
  b.packed = true;
  count_matrices(b, l_.b);
  const LoopGroup used = l_.loops_of(l_.batch, l_.b);
  const int64_t width = p_.panel();
  const int64_t panels = (p_.columns + width - 1) / width;
  b.depth = width;
  b.row = 1;
  b.panels = true;
  const bool starts = raised_ == &l_.a;
  const int64_t panel_depth = p_.depth + (starts ? 1 : 0);
  b.matrix = panels * panel_depth * width;
  Kernel& k = b.pack.kernel;
  k.loops.push_back({b.batches * panels});
  for (size_t l : l_.depth) k.loops.push_back(l_.kernel.loops[l]);
  k.loops.push_back({width});
  k.outer = k.loops.size();
  KernelBuilder builder(graph_, k, [](ValueId) { return true; });
  std::vector<Index> loops(l_.kernel.loops.size());
  Index batch;
  Index panel;
  builder.divide(loop_index(0), panels, batch, panel);
  const size_t lane = l_.depth.size() + 1;
  Index column = add_scaled(loop_index(lane), panel, width);
  ExprId mask = builder.in_range(column, p_.columns);
  spread(builder, used, batch, loops);
  spread(builder, l_.columns, column, loops);
  Index to = add_scaled(loop_index(lane), loop_index(0), panel_depth * width);
  int64_t step = width;
  for (size_t i = l_.depth.size(); i-- > 0;) {
    loops[l_.depth[i]] = loop_index(1 + i);
    to = add_scaled(to, loop_index(1 + i), step);
    step *= l_.size(l_.depth[i]);
  }
  builder.guard(mask);
  finish(b, builder, l_.b, std::move(loops), to, mask);
  if (starts) start_panels(used, b);
}

/// Adds the kernel that writes the initial values of the result's columns after each panel: -128 times the sum of
/// each column of b, because 128 is added to a.
void OperandPacker::start_panels(const LoopGroup& used, ProductOperand& b) const {
  const int64_t width = p_.panel();
  const int64_t panels = (p_.columns + width - 1) / width;
  Kernel& k = b.start.kernel;
  k.loops = {{b.batches * panels}, {width}};
  k.outer = k.loops.size();
  KernelBuilder builder(graph_, k, [](ValueId) { return true; });
  std::vector<Index> loops(l_.kernel.loops.size());
  Index batch;
  Index panel;
  builder.divide(loop_index(0), panels, batch, panel);
  const Index column = add_scaled(loop_index(1), panel, width);
  const ExprId mask = builder.in_range(column, p_.columns);
  spread(builder, used, batch, loops);
  spread(builder, l_.columns, column, loops);
  builder.guard(mask);
  Index to = add_scaled(loop_index(1), loop_index(0), (p_.depth + 1) * width);
  to.constant = p_.depth * width;
  store_starts(b.start, builder, l_.b, std::move(loops), to);
}

void OperandPacker::start_rows(ProductOperand& a) const {
  count_matrices(a, l_.a);
  Kernel& k = a.start.kernel;
  k.loops = {{a.batches * p_.rows}};
  k.outer = 1;
  KernelBuilder builder(graph_, k, [](ValueId) { return true; });
  std::vector<Index> loops(l_.kernel.loops.size());
  Index batch;
  Index row;
  builder.divide(loop_index(0), p_.rows, batch, row);
  spread(builder, l_.loops_of(l_.batch, l_.a), batch, loops);
  spread(builder, l_.rows, row, loops);
  store_starts(a.start, builder, l_.a, std::move(loops), loop_index(0));
}

/// Adds the loops of the depth to `plan`, and a store of -128 times the sum of `f` over them. Its last buffer is the one it writes.
void OperandPacker::store_starts(KernelPlan& plan, KernelBuilder& builder, const Factor& f, std::vector<Index> loops,
                                 const Index& to) const {
  Kernel& k = plan.kernel;
  for (size_t l : l_.depth) {
    loops[l] = loop_index(k.loops.size());
    k.loops.push_back(l_.plan().kernel.loops[l]);
  }
  Reduction r;
  r.combine = COLLET_COMBINE_ADD;
  r.inputs = {KernelRewriter(l_.kernel, l_.plan().buffers, std::move(loops), builder, k).value(f.value)};
  r.inits = {builder.integer(l_.type, 0)};
  r.types = {l_.type};
  k.reductions.push_back(std::move(r));
  Expr sum;
  sum.op = ExprOp::kReduced;
  sum.type = l_.type;
  const ExprId start =
      builder.op(COLLET_OP_MULTIPLY, l_.type, {builder.emit(std::move(sum)), builder.integer(l_.type, -128)});
  plan.buffers = builder.buffers();
  k.stores.push_back({static_cast<uint32_t>(plan.buffers.size()), start, to, kNoExpr});
  plan.buffers.push_back(kNone);
  k.buffers = static_cast<uint32_t>(plan.buffers.size());
}

/// Returns a packed element, as s32, that is composed of its parts.
ExprId OperandPacker::pack_parts(KernelBuilder& builder, const Factor& f, std::vector<Index> loops, Kernel& to) const {
  constexpr uint32_t kBits = COLLET_TYPE_S32;
  const int width = 32 / l_.parts;
  const Index first = add_scaled({}, loops[l_.depth.back()], l_.parts);
  ExprId x = kNoExpr;
  for (int i = 0; i < l_.parts; ++i) {
    loops[l_.depth.back()] = first;
    loops[l_.depth.back()].constant += i;
    ExprId part = KernelRewriter(l_.kernel, l_.plan().buffers, loops, builder, to).value(f.value);
    if (l_.type == COLLET_TYPE_F32) {  // the upper half of an f32 is the bf16
      part = builder.op(COLLET_OP_BITCAST_CONVERT, kBits, {part});
      part = builder.op(COLLET_OP_SHIFT_RIGHT_LOGICAL, kBits, {part, builder.integer(kBits, width)});
    }
    if (i + 1 < l_.parts)
      part = builder.op(COLLET_OP_AND, kBits, {part, builder.integer(kBits, (int64_t{1} << width) - 1)});
    if (i > 0) part = builder.op(COLLET_OP_SHIFT_LEFT, kBits, {part, builder.integer(kBits, i * width)});
    x = i == 0 ? part : builder.op(COLLET_OP_OR, kBits, {x, part});
  }
  return x;
}

/// Adds the store of factor `f` at the iterations `loops` of the product's loops.
void OperandPacker::finish(ProductOperand& o, KernelBuilder& builder, const Factor& f, std::vector<Index> loops,
                           const Index& to, ExprId mask) const {
  ExprId x = kNoExpr;
  Expr load;
  if (l_.parts > 1) {
    if (l_.packed_load(f, load)) {
      load.buffer = builder.buffer(l_.plan().buffers[load.buffer]);
      load.index =
          KernelRewriter(l_.kernel, l_.plan().buffers, std::move(loops), builder, o.pack.kernel).index(load.index);
      load.mask = mask;
      x = builder.emit(std::move(load));
    } else {
      x = pack_parts(builder, f, std::move(loops), o.pack.kernel);
    }
    if (&f == raised_)
      x = builder.op(COLLET_OP_XOR, COLLET_TYPE_S32, {x, builder.integer(COLLET_TYPE_S32, INT32_MIN | 0x00808080)});
  } else {
    KernelRewriter rewriter(l_.kernel, l_.plan().buffers, std::move(loops), builder, o.pack.kernel);
    x = builder.convert(rewriter.value(f.value), l_.type);
  }
  o.pack.buffers = builder.buffers();
  o.pack_output = static_cast<uint32_t>(o.pack.buffers.size());
  o.pack.buffers.push_back(kNone);
  o.pack.kernel.buffers = o.pack_output + 1;
  o.pack.kernel.stores.push_back({o.pack_output, x, to, kNoExpr});
}

}  // namespace collet::codegen
