// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/grid_library.h"

#include <bit>
#include <vector>

#include "sdk/codegen/kernel/transform.h"
#include "sdk/codegen/schedule/grid_loops.h"
#include "sdk/codegen/schedule/grid_tiles.h"

namespace collet::codegen {
namespace {

/// Loops of the rows, the columns, the depth and the batches; -1 where there is one point only.
struct ProductLoops {
  int rows = -1;
  int columns = -1;
  int depth = -1;
  int batch = -1;
};

/// The only loop of a set, or -1 if it is empty. False if there are several.
bool only_loop(uint64_t loops, int& out) {
  out = loops == 0 ? -1 : std::countr_zero(loops);
  return std::popcount(loops) <= 1;
}

/// The loops that an index moves along.
uint64_t loops_of(const Kernel& kernel, const Index& index) {
  uint64_t loops = 0;
  for (size_t l = 0; l < kernel.loops.size(); ++l) {
    if (index.coefficient(l) != 0) loops |= uint64_t{1} << l;
  }
  return loops;
}

int64_t size_of(const Kernel& kernel, int loop) {
  return loop < 0 ? 1 : kernel.loops[static_cast<size_t>(loop)].size;
}

LibraryMatrix matrix_of(uint32_t type, const Index& index, int batch, int row, int column) {
  const auto distance = [&](int loop) { return loop < 0 ? 0 : index.coefficient(static_cast<size_t>(loop)); };
  return {type, index.constant, distance(batch), distance(row), distance(column)};
}

/// The array that `e` reads without a condition; null where it is anything else.
const Expr* plain_load(const Kernel& kernel, ExprId e) {
  const Expr& expr = kernel.exprs[static_cast<size_t>(e)];
  return expr.op == ExprOp::kLoad && expr.mask == kNoExpr && expr.index.terms.empty() ? &expr : nullptr;
}

/// Whether the sum begins with zero.
bool begins_with_zero(const Kernel& kernel, const Reduction& r) {
  if (r.inits[0] == kNoExpr) return true;
  const Expr& init = kernel.exprs[static_cast<size_t>(r.inits[0])];
  return init.op == ExprOp::kConstant && init.bits[0] == 0 && init.bits[1] == 0;
}

}  // namespace

bool match_product(const Kernel& original, ProductMatch& out) {
  if (original.reductions.size() != 1 || original.stores.size() != 1 || original.scan || original.sequential ||
      !original.updates.empty() || original.loops.size() > 64)
    return false;
  Kernel kernel = original;
  collapse_loops(kernel);
  const Reduction& r = kernel.reductions[0];
  if (r.combine != COLLET_COMBINE_ADD || r.condition != kNoExpr || r.inputs.size() != 1 || !begins_with_zero(kernel, r))
    return false;
  const uint32_t sum_type = r.types[0];
  const Expr& multiply = kernel.exprs[static_cast<size_t>(r.inputs[0])];
  if (multiply.op != ExprOp::kOp || multiply.opcode != COLLET_OP_MULTIPLY || multiply.type != sum_type) return false;
  const Expr* a = plain_load(kernel, before_conversion(kernel, multiply.args[0], sum_type));
  const Expr* b = plain_load(kernel, before_conversion(kernel, multiply.args[1], sum_type));
  if (!a || !b) return false;
  const Store& store = kernel.stores[0];
  if (store.mask != kNoExpr || !store.index.terms.empty() || store.buffer == a->buffer || store.buffer == b->buffer)
    return false;
  const Expr* result = &kernel.exprs[static_cast<size_t>(store.value)];
  const uint32_t result_type = result->type;
  if (result->op == ExprOp::kOp && result->opcode == COLLET_OP_CONVERT)
    result = &kernel.exprs[static_cast<size_t>(result->args[0])];
  if (result->op != ExprOp::kReduced || result->type != sum_type) return false;

  // The left factor is the one whose rows are the rows of the result as it lies in memory, so that the result is row by row.
  const uint64_t of_result = loops_of(kernel, store.index), outer = outer_loops(kernel);
  const auto set_loops = [&](ProductLoops& loops) {
    const uint64_t of_a = loops_of(kernel, a->index), of_b = loops_of(kernel, b->index);
    return (of_result | of_a | of_b) == (outer | inner_loops(kernel)) && (of_result & ~outer) == 0 &&
           (of_result & (of_a | of_b)) == of_result && only_loop(outer & of_a & ~of_b, loops.rows) &&
           only_loop(outer & of_b & ~of_a, loops.columns) && only_loop(outer & of_a & of_b, loops.batch) &&
           only_loop(inner_loops(kernel), loops.depth) && (of_a & of_b & ~outer) == inner_loops(kernel) &&
           (outer & ~of_result) == 0;
  };
  ProductLoops loops;
  if (!set_loops(loops)) return false;
  if (loops.rows >= 0 && loops.columns >= 0 && store.index.coefficient(static_cast<size_t>(loops.rows)) == 1) {
    std::swap(a, b);
    std::swap(loops.rows, loops.columns);
  }
  LibraryProduct& p = out.product;
  p = {};
  p.batches = size_of(kernel, loops.batch);
  p.rows = size_of(kernel, loops.rows);
  p.columns = size_of(kernel, loops.columns);
  p.depth = size_of(kernel, loops.depth);
  p.a = matrix_of(a->type, a->index, loops.batch, loops.rows, loops.depth);
  p.b = matrix_of(b->type, b->index, loops.batch, loops.depth, loops.columns);
  p.c = matrix_of(result_type, store.index, loops.batch, loops.rows, loops.columns);
  p.sum_type = sum_type;
  p.tf32 = r.tf32;
  out.a = a->buffer;
  out.b = b->buffer;
  out.c = store.buffer;
  return true;
}

}  // namespace collet::codegen
