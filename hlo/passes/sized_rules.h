// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "hlo/ops/constraint.h"
#include "hlo/passes/rewriter.h"
#include "hlo/passes/sized_ops.h"

/// \file
/// The implementation of build_sized: how each op is built on padded arrays with size scalars.

namespace collet::hlo {

using Values = std::vector<InstrId>;

inline bool any(const Sizes& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](InstrId s) { return s != InstrId::None; });
}

inline InstrId at(const Sizes& sizes, size_t d) {
  return sizes.empty() ? InstrId::None : sizes[d];
}

/// Builds one op by the rule for its opcode.
class SizedRules {
 public:
  SizedRules(Builder& b, const SizedOp& op) : b_(b), op_(op), instr_(op.instr) {
    operands_.assign(instr_.operands.begin(), instr_.operands.end());
  }

  SizedResult run();

 private:
  size_t dimension() const { return static_cast<size_t>(instr_.as<DimensionAttrs>().dimension); }
  InstrId size(size_t operand, size_t d) { return size_or_bound(b_, operands_[operand], op_.sizes[operand], d); }
  InstrId number(int64_t value) { return b_.scalar_int(Type::S32, value); }
  size_t rank(size_t operand) const { return static_cast<size_t>(b_.rank(operands_[operand])); }
  // Builds the same op on the padded operands.
  InstrId same() { return b_.op(instr_.op, at_bounds(instr_.shape), operands_, instr_.attrs, instr_.called.span()); }
  InstrId zero(InstrId x) { return b_.scalar_int(b_.type(x), 0); }
  InstrId zero_of(InstrId x) { return b_.fill(Shape::scalar(b_.type(x)), 0); }
  InstrId clamp(InstrId x, InstrId low, InstrId high) { return b_.max(b_.min(x, high), low); }

  // sized_ops.cc
  SizedResult fail(const std::string& what);
  InstrId smaller(InstrId a, InstrId c);
  SizedResult elementwise();
  SizedResult set_size();

  // sized_movement.cc
  SizedResult broadcast();
  SizedResult transpose();
  bool keep_dimensions(const Shape& to, Sizes& out) const;
  SizedResult reshape();
  InstrId move_together(InstrId x, const Shape& to, const Sizes& sizes);
  SizedResult slice();
  Values clamped_starts(size_t first, const Values& window);
  SizedResult dynamic_slice();
  SizedResult dynamic_update_slice();
  InstrId inside_of(InstrId x, const Sizes& sizes);
  SizedResult concatenate();
  SizedResult pad();
  SizedResult reverse();

  // sized_structures.cc
  InstrId neutral(CompId combiner, InstrId init);
  size_t arrays() const { return operands_.size() / 2; }
  void mask_arrays();
  SizedResult reduce();
  SizedResult reduce_window();
  SizedResult dot();
  SizedResult sort();
  CompId padding_last(CompId comparator, size_t keys);
  SizedResult gather();
  SizedResult scatter();
  InstrId scatter_inside(size_t n, InstrId inside);
  InstrId first_of(InstrId tuple, size_t n);
  SizedResult custom_call();

  Builder& b_;
  const SizedOp& op_;
  const Instruction& instr_;
  Values operands_;
};

}  // namespace collet::hlo
