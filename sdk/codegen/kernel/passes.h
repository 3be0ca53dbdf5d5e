// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/kernel.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

/// \file
/// KernelPasses divides a kernel into passes over its inner loops.

namespace collet::codegen {

/// The passes of one kernel over its inner loops, and what each of them computes. A pass may use the results of
/// reductions of the passes before it. The kernel must outlive this object, and its schedule must not change.
///
/// The level of an expression is the number of loops around it; its stage is the first pass that can compute it.
class KernelPasses {
 public:
  explicit KernelPasses(const Kernel& kernel);

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
  /// Returns the first pass that needs expression `k`; -1 if none does.
  int first_pass(size_t k) const { return first_pass_[k]; }
  bool is_kept(size_t k) const { return kept_[k]; }
  /// True if a pass loads expression `k`, which an earlier pass has stored.
  bool is_loaded(int pass, size_t k) const { return kept_[k] && first_pass_[k] < pass; }
  /// Calls `visit` for each expression that a pass needs for a reduction or a store at each point of the inner loops.
  void each_root(int pass, const std::function<void(ExprId)>& visit) const;

  /// Return the number of lanes of a pass, and how many vectors it computes at a time: see PassSchedule.
  int width(int pass) const;
  int together(int pass) const;
  int largest_width() const;
  /// True if the vectorised loop is an inner one.
  bool lanes_inside() const { return k_.lanes > 1 && k_.lane_loop >= k_.outer; }
  /// True if all inner loops are unrolled.
  bool is_straight() const;

  // The loops of which several iterations are computed at a time.
  /// Return the innermost outer loop of kind kInterleave or kTranspose, and its iterations at a time; 1 if there is none.
  size_t side_loop() const { return side_loop_; }
  int side_unroll() const { return side_unroll_; }
  /// Return the loop of kind kInterleave outside of the side loop, and its factor; 1 if there is none.
  size_t row_loop() const { return row_loop_; }
  int row_unroll() const { return row_unroll_; }
  /// True if the side loop is of kind kTranspose; is_transposed() says which loads are.
  bool is_transposing() const { return side_unroll_ > 1 && k_.loops[side_loop_].kind == LoopKind::kTranspose; }
  bool is_transposed(size_t k) const { return is_transposing() && transposed_[k]; }
  /// True if the loop in lanes is run in strips of strip() iterations, each of rows() rows at a time.
  bool is_row_by_row() const { return strip() != 0; }
  int64_t strip() const { return k_.lane_loop < k_.loops.size() ? k_.loops[k_.lane_loop].strip : 0; }
  int rows() const { return k_.loops[k_.outer].factor; }

 private:
  size_t level_of_index(const Index& index) const;
  int stage_of_index(const Index& index) const;
  void find_stages(const std::vector<uint64_t>& deps);
  void need(int pass, ExprId t);

  const Kernel& k_;
  std::vector<size_t> level_;
  std::vector<int> stage_;
  std::vector<int> reduction_stage_;
  std::vector<std::vector<bool>> needed_;  ///< by pass and expression: see `needs`
  std::vector<bool> kept_;
  std::vector<int> first_pass_;
  std::vector<bool> transposed_;
  int last_stage_ = 0;
  size_t side_loop_ = 0;
  int side_unroll_ = 1;
  size_t row_loop_ = 0;
  int row_unroll_ = 1;
};

/// True if expression `k` is a load that is transposed along `loop`, see LoopKind::kTranspose.
bool is_transposed(const Kernel& kernel, const std::vector<uint64_t>& deps, size_t k, size_t loop);

/// Returns the number of outer loops of kind kInterleave.
int interleaved_loops(const Kernel& kernel);

}  // namespace collet::codegen
