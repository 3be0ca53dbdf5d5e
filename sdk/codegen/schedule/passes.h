// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/target.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sdk/codegen/kernel/kernel.h"

/// \file
/// KernelPasses divides a kernel into passes over its inner loops, and decides what each pass computes.

namespace collet::codegen {

/// The passes of one kernel over its inner loops. A pass may use the results of reductions of the passes before it. This also
/// decides the lanes of each pass, the values that a later pass loads from memory instead of computing them again, and which loops
/// are unrolled. Everything is decided by the constructor. The kernel must outlive this object.
///
/// The level of an expression is the number of loops around it; its stage is the first pass that can compute it.
class KernelPasses {
 public:
  KernelPasses(const Kernel& kernel, const Target& target);

  size_t level_of(ExprId t) const { return t == kNoExpr ? 0 : level_[static_cast<size_t>(t)]; }
  int stage_of(ExprId t) const { return t == kNoExpr ? 0 : stage_[static_cast<size_t>(t)]; }

  /// Returns the number of the last pass.
  int last() const { return last_stage_; }
  /// Returns the pass that computes reduction `r`.
  int reduction_pass(size_t r) const { return reduction_stage_[r]; }
  /// Returns the pass that stores `s`.
  int pass_of(const Store& s) const;
  /// True if `s` is inside of the inner loops.
  bool is_inner(const Store& s) const;
  /// True if a pass needs expression `k` at each point of the inner loops.
  bool needs(int pass, size_t k) const { return needed_[static_cast<size_t>(pass)][k]; }

  /// Returns the number of lanes of a pass. They may fill several vectors, to hide the latency of a reduction that does
  /// little else.
  int width(int pass) const { return widths_[static_cast<size_t>(pass)]; }
  int largest_width() const;
  /// Returns how many vectors a pass that reduces nothing computes at a time, as one wider vector. The operations of a mathematical
  /// function wait for each other, and a processor looks ahead over too few instructions to reach the next vector.
  int together(int pass) const { return together_[static_cast<size_t>(pass)]; }
  /// True if the vectorised loop is an inner one.
  bool lanes_inside() const { return k_.lanes > 1 && k_.lane_loop >= k_.outer; }

  /// True if the first pass stores expression `k` to a local array, from which later passes load it.
  bool is_kept(size_t k) const { return kept_[k]; }
  int first_pass(size_t k) const { return first_pass_[k]; }

  /// True if the short inner loops are unrolled completely. If so, side_unroll() iterations of the outer loop
  /// side_loop() are interleaved, so that they share loads. Iterations that each reduce a row of few vectors are
  /// interleaved, too: the operations on one row wait for each other, and those on the others fill the time. So are
  /// rows that are gathered at the same positions, which are then computed once.
  bool is_straight() const { return straight_; }
  size_t side_loop() const { return side_loop_; }
  int side_unroll() const { return side_unroll_; }
  /// Returns the loop outside of the side loop whose iterations are interleaved with those of the side loop, row_unroll() of them,
  /// because windows of neighbouring rows overlap. row_unroll() is 1 if there is none.
  size_t row_loop() const { return row_loop_; }
  int row_unroll() const { return row_unroll_; }

  /// True if the kernel is computed row by row, see reduces_rows: rows() rows at a time, in strips of strip() columns.
  bool is_row_by_row() const { return rows_ > 0; }
  int rows() const { return rows_; }
  int64_t strip() const { return strip_; }

  /// True if loads are transposed along the side loop, see transposing_loop; is_transposed() says which loads. They are
  /// read in squares, before the iterations of the square are computed.
  bool is_transposing() const { return transposing_; }
  bool is_transposed(size_t k) const { return transposing_ && transposed_[k]; }

  /// True if the lanes may hold the elements of a row in any order, the same for all loads: all lanes of bf16 are
  /// reduced.
  bool is_unordered() const { return unordered_; }

  /// True if vectors are scalable. Kernels that rearrange lanes use vectors of fixed length instead.
  bool is_scalable() const { return scalable_; }
  /// True if the tail is computed as one masked vector instead of one element at a time.
  bool has_masks() const { return masks_ || scalable_; }

 private:
  size_t level_of_index(const Index& index) const;
  int stage_of_index(const Index& index) const;
  void find_stages(const std::vector<uint64_t>& deps);
  /// Finds values that are worth keeping from one pass over a row to the next, because they cost more than a load.
  void find_costly(const std::vector<uint64_t>& deps);
  void find_straight(const std::vector<uint64_t>& deps, int vector_bits);
  /// True if a load reads some of the same elements in neighbouring iterations of outer loop `l`, for other points of the inner
  /// loops.
  bool windows_overlap(size_t l) const;
  void find_rows(const Target& target);
  bool finds_unordered(const std::vector<uint64_t>& deps) const;
  void find_interleaved();
  void find_gathers(const std::vector<uint64_t>& deps);
  void find_transposed(const std::vector<uint64_t>& deps);
  void find_scalable(const Target& target);
  void need_all(int pass);
  void need(int pass, ExprId t);
  /// Decides that expression `k` is stored for later passes, for the whole row. Returns false if the arrays would get too large.
  bool keep(size_t k);
  int width_of(int pass, int most) const;
  int together_of(int pass, int most) const;

  const Kernel& k_;
  std::vector<size_t> level_;
  std::vector<int> stage_;
  std::vector<int> reduction_stage_;
  std::vector<std::vector<bool>> needed_;  ///< by pass and expression: see `needs`
  std::vector<int> widths_;                ///< by pass: see `width`
  std::vector<int> together_;              ///< by pass: see `together`
  std::vector<bool> costly_;
  std::vector<bool> kept_;
  std::vector<int> first_pass_;
  int last_stage_ = 0;
  int64_t row_ = 1;         ///< product of the sizes of the inner loops
  int64_t kept_bytes_ = 0;  ///< bytes of all kept rows
  bool straight_ = false;
  int rows_ = 0;
  int64_t strip_ = 0;
  bool transposing_ = false;
  bool masks_ = false;
  bool scalable_ = false;
  bool unordered_ = false;
  std::vector<bool> transposed_;
  size_t side_loop_ = 0;
  int side_unroll_ = 1;
  size_t row_loop_ = 0;
  int row_unroll_ = 1;
};

/// Returns how many iterations of loop 0 are computed together: threads should be given multiples of them.
int64_t grain_of(const Kernel& kernel, const Target& target);

}  // namespace collet::codegen
