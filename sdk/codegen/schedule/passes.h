// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/target.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sdk/codegen/kernel/kernel.h"

/// \file
/// In how many passes the inner loops of a kernel are walked, and what each computes.

namespace collet::codegen {

/// The passes of one kernel over its inner loops: what a pass reads of a row was reduced by those before it. Also the lanes of
/// each pass, the values that a later pass reads from memory in place of computing them again, and which loops are written
/// out. Decided once, from the kernel and the target; the kernel must outlive this.
///
/// The level of an expression is the number of loops around it; its stage is the first pass that can compute it.
class KernelPasses {
 public:
  KernelPasses(const Kernel& kernel, const Target& target);

  size_t level_of(ExprId t) const { return t == kNoExpr ? 0 : level_[static_cast<size_t>(t)]; }
  int stage_of(ExprId t) const { return t == kNoExpr ? 0 : stage_[static_cast<size_t>(t)]; }

  /// The number of the last pass.
  int last() const { return last_stage_; }
  /// The pass that reduction `r` is folded in.
  int reduction_pass(size_t r) const { return reduction_stage_[r]; }
  /// The pass that stores `s`.
  int pass_of(const Store& s) const;
  /// Whether `s` is inside of the inner loops.
  bool is_inner(const Store& s) const;
  /// Whether a pass needs expression `k` at each point of the inner loops.
  bool needs(int pass, size_t k) const { return needed_[static_cast<size_t>(pass)][k]; }

  /// Lanes of a pass: several vectors side by side hide the latency of a reduction that does little else.
  int width(int pass) const { return widths_[static_cast<size_t>(pass)]; }
  int largest_width() const;
  /// Whether the vectorised loop is an inner one.
  bool lanes_inside() const { return k_.lanes > 1 && k_.lane_loop >= k_.outer; }

  /// Whether later passes read expression `k` from memory of the function's own, where its first pass has put it.
  bool is_kept(size_t k) const { return kept_[k]; }
  int first_pass(size_t k) const { return first_pass_[k]; }

  /// Whether the short inner loops are written out; then up to side_turns() turns of side_loop() stand side by side, so that
  /// they share what they load.
  bool is_straight() const { return straight_; }
  size_t side_loop() const { return side_loop_; }
  int side_turns() const { return side_turns_; }

  /// Whether rows are folded as folds_rows says: how many of them at a time, and how many columns before the next ones.
  bool is_row_by_row() const { return rows_ > 0; }
  int rows() const { return rows_; }
  int64_t strip() const { return strip_; }

  /// Whether the side loop is one that loads are transposed along, as transposing_loop says: is_transposed() of them. As many
  /// of its turns as there are lanes read squares first.
  bool is_transposing() const { return transposing_; }
  bool is_transposed(size_t k) const { return transposing_ && transposed_[k]; }

  /// Whether vectors are scalable ones. Their lanes keep their places: what rearranges them has vectors of known length.
  bool is_scalable() const { return scalable_; }
  /// Whether a last, partial vector is masked rather than computed an element at a time.
  bool has_masks() const { return masks_ || scalable_; }

 private:
  size_t level_of_index(const Index& index) const;
  int stage_of_index(const Index& index) const;
  void find_stages(const std::vector<uint64_t>& deps);
  /// Values worth keeping from one pass over a row to the next: they cost more than a load.
  void find_costly(const std::vector<uint64_t>& deps);
  void find_straight(const std::vector<uint64_t>& deps, int vector_bits);
  void find_rows(const Target& target);
  void find_transposed(const std::vector<uint64_t>& deps);
  void find_scalable(const Target& target);
  void need_all(int pass);
  void need(int pass, ExprId t);
  /// Keeps a value of all the row for later passes; false where there is no room for it.
  bool keep(size_t k);
  int width_of(int pass) const;

  const Kernel& k_;
  std::vector<size_t> level_;
  std::vector<int> stage_;
  std::vector<int> reduction_stage_;
  std::vector<std::vector<bool>> needed_;  ///< by pass
  std::vector<int> widths_;                ///< by pass
  std::vector<bool> costly_;
  std::vector<bool> kept_;
  std::vector<int> first_pass_;
  int last_stage_ = 0;
  int64_t row_ = 1;         ///< elements of all the inner loops
  int64_t kept_bytes_ = 0;  ///< of the kept values' rows
  bool straight_ = false;
  int rows_ = 0;
  int64_t strip_ = 0;
  bool transposing_ = false;
  bool masks_ = false;
  bool scalable_ = false;
  std::vector<bool> transposed_;
  size_t side_loop_ = 0;
  int side_turns_ = 1;
};

}  // namespace collet::codegen
