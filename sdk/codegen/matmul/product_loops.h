// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The loops of a kernel that is a product of matrices.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sdk/codegen/kernel/kernel_plan.h"

namespace collet::codegen {

/// Loops, outermost first, that together count like one loop whose size is the product of theirs.
using LoopGroup = std::vector<size_t>;

/// A factor of a product.
struct Factor {
  ExprId value = kNoExpr;
  /// The load, if the value is a plain load of the type of the sums; else null. Once neighbours are packed, the load of a
  /// packed element.
  const Expr* load = nullptr;
  const Expr* source = nullptr;  ///< the load, if the value is a plain load or a conversion of one; else null
  const Expr* access = nullptr;  ///< like `source`, but the load may have a mask
  uint64_t loops = 0;            ///< loops that it depends on, as a bit set

  bool depends_on(size_t loop) const { return (loops >> loop & 1) != 0; }
};

/// A kernel that stores a sum of products, with its loops sorted into those of the batch, the rows, the columns and the depth. The loop
/// that is contiguous in the result is a column, or there is one column. The groups have no loops of size 1.
class ProductLoops {
 public:
  /// `plan` must outlive this.
  explicit ProductLoops(const KernelPlan& plan) : kernel(plan.kernel), plan_(plan) {}
  ProductLoops(const ProductLoops&) = delete;  // factors have pointers into `kernel`
  ProductLoops& operator=(const ProductLoops&) = delete;

  /// Recognises the product. The first `batch_loops` loops become loops of the batch even if they could be rows. Returns false if the kernel
  /// is none.
  bool find(size_t batch_loops);

  /// Packs `parts` neighbours along the depth into one element, which its last loop counts from now on. Its size is a multiple
  /// of `parts`.
  void pack_neighbours(int parts);

  /// Moves all loops of the columns but the last to the batch.
  void keep_last_column();
  /// Moves the first `count` loops of the rows to the batch.
  void move_rows_to_batch(size_t count);
  /// Splits loop number `number` of the depth, so that the new loop after it has `inside` iterations.
  void split_depth(size_t number, int64_t inside);

  const Store& store() const { return kernel.stores[0]; }
  const Expr& at(ExprId t) const { return kernel.exprs[static_cast<size_t>(t)]; }
  ValueId value_of(const Expr& load) const { return plan_.buffers[load.buffer]; }
  const KernelPlan& plan() const { return plan_; }
  int64_t size(size_t loop) const { return kernel.loops[loop].size; }
  int64_t extent(const LoopGroup& group) const;
  int element_bytes() const { return type == COLLET_TYPE_F64 ? 8 : 4; }  ///< of the sums, and of packed elements

  /// Finds the step with which an index moves when the loops of a group count like one loop. Returns false if there is no
  /// such step.
  bool step_of(const Index& index, const LoopGroup& group, int64_t& step) const;
  /// Finds the distances in `a` from row to row and from step to step of the depth. Returns false if one of them varies.
  bool steps_of_a(int64_t& row, int64_t& step) const;
  /// True if `b` can be read where it is: its columns are neighbours, and its steps of the depth equally far apart.
  bool reads_b_in_place() const;
  /// True if several columns and steps of the depth read the same element of b, as the windows of a convolution do, or if neighbouring
  /// columns are apart in memory. A packed copy of b is then read faster, even by few rows.
  bool reads_b_in_windows() const;

  /// Returns the type that a value is converted from; 0 if it is not converted.
  uint32_t converted_from(ExprId t) const;
  bool is_signed(const Factor& f) const { return collet_type_kind(converted_from(f.value)) == COLLET_KIND_SIGNED; }
  /// Sets `out` to a load of an element of `parts` neighbours, as s32. Returns false if they are not adjacent in memory.
  bool packed_load(const Factor& f, Expr& out) const;
  /// Returns the loops of a group that a factor depends on.
  LoopGroup loops_of(const LoopGroup& group, const Factor& f) const;

  Kernel kernel;          ///< the kernel; its last loop of the depth counts packed elements
  uint32_t type = 0;      ///< element type of the sums
  int parts = 1;          ///< neighbours of the depth in one element
  bool converts = false;  ///< whether the sums are converted before they are stored
  Factor a;               ///< depends on the rows
  Factor b;               ///< depends on the columns
  LoopGroup batch, rows, columns, depth;

 private:
  Factor factor(ExprId value, uint64_t loops) const;
  bool is_small_integer(ExprId t) const;
  bool sort_loops(size_t batch_loops);
  void order_depth();

  const KernelPlan& plan_;
  Expr packed_;  ///< the load of packed elements of a
};

}  // namespace collet::codegen
