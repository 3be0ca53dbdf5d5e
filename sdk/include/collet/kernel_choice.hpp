/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_CHOICE_HPP
#define COLLET_KERNEL_CHOICE_HPP

/** \file
 * Computes the bodies of reductions that choose one of their elements, as those of argmax and argmin do. Included by
 * kernel_rows.hpp.
 */

#include <array>
#include <string>
#include <vector>

#include "kernel_call.hpp"

namespace collet {
namespace kernel {

/** The body of a reduce of two arrays, if all that it does is to compare, to combine what the comparisons give, and to select.
 * Values are held as double, which has all numbers of the element types but s64 and u64. */
class ChoiceBody {
 public:
  /** An element of the two arrays. */
  using Pair = std::array<double, 2>;

  /** Reads the body of `op`; refusal() says why it cannot be computed here. */
  explicit ChoiceBody(const Op& op) : p_(op.program()), region_(collet_region_at(p_, op.raw().regions.first)) {
    if (op.operand_count() != 4 || region_->arguments.count != 4 || region_->results.count != 2) {
      refusal_ = "only choices between elements of two arrays";
      return;
    }
    for (uint32_t i = 0; i < 4; ++i) note(region_->arguments.first + i);
    for (uint32_t i = 0; i < region_->ops.count && refusal_.empty(); ++i) {
      add(collet_op_at(p_, region_->ops.first + i));
    }
    for (uint32_t i = 0; i < 2 && refusal_.empty(); ++i)
      results_[i] = slot(collet_ref_at(p_, region_->results.first + i));
    slots_.resize(values_.size());
  }

  /** Returns why the body cannot be computed here; empty if it can. */
  const std::string& refusal() const { return refusal_; }

  /** Combines `state` with the element `x`. Uses memory of this object. */
  void combine(Pair* state, const Pair& x) {
    slots_[0] = (*state)[0], slots_[1] = (*state)[1], slots_[2] = x[0], slots_[3] = x[1];
    for (const Step& step : steps_) slots_[step.to] = value_of(step);
    (*state)[0] = slots_[results_[0]];
    (*state)[1] = slots_[results_[1]];
  }

 private:
  struct Step {
    uint32_t opcode, direction;
    std::array<size_t, 3> from;
    size_t to;
  };

  void note(uint32_t value) {
    const uint32_t element = collet_value_type(p_, value)->element;
    if (element == COLLET_TYPE_S64 || element == COLLET_TYPE_U64) refusal_ = "no choices between 64-bit integers";
    values_.push_back(value);
  }
  size_t slot(uint32_t value) {
    for (size_t i = 0; i < values_.size(); ++i) {
      if (values_[i] == value) return i;
    }
    refusal_ = "a body with a value from outside";
    return 0;
  }

  void add(const collet_op* op) {
    Step step{op->opcode, 0, {0, 0, 0}, values_.size()};
    switch (op->opcode) {
      case COLLET_OP_COMPARE: {
        collet_compare_attrs how;
        collet_read_attributes(p_, op, &how, sizeof how);
        if (how.type == COLLET_COMPARE_TOTALORDER) refusal_ = "no choices by the total order of floats";
        step.direction = how.direction;
        break;
      }
      case COLLET_OP_AND:
      case COLLET_OP_OR:
      case COLLET_OP_XOR:
      case COLLET_OP_NOT:
        if (collet_value_type(p_, op->results.first)->element != COLLET_TYPE_PRED)
          refusal_ = "bits of integers in a body";
        break;
      case COLLET_OP_SELECT:
        break;
      default:
        refusal_ = std::string("only bodies that compare and select, not ") + collet_op_name(op->opcode);
    }
    for (uint32_t i = 0; i < op->operands.count && i < 3; ++i) step.from[i] = slot(collet_operand(p_, op, i));
    note(op->results.first);
    steps_.push_back(step);
  }

  double value_of(const Step& step) const {
    const double a = slots_[step.from[0]], b = slots_[step.from[1]];
    switch (step.opcode) {
      case COLLET_OP_COMPARE:
        return is_true(step.direction, a, b) ? 1 : 0;
      case COLLET_OP_AND:
        return a != 0 && b != 0 ? 1 : 0;
      case COLLET_OP_OR:
        return a != 0 || b != 0 ? 1 : 0;
      case COLLET_OP_XOR:
        return (a != 0) != (b != 0) ? 1 : 0;
      case COLLET_OP_NOT:
        return a == 0 ? 1 : 0;
      default:
        return a != 0 ? b : slots_[step.from[2]];
    }
  }
  static bool is_true(uint32_t direction, double a, double b) {
    switch (direction) {
      case COLLET_DIRECTION_EQ:
        return a == b;
      case COLLET_DIRECTION_NE:
        return a != b;
      case COLLET_DIRECTION_GE:
        return a >= b;
      case COLLET_DIRECTION_GT:
        return a > b;
      case COLLET_DIRECTION_LE:
        return a <= b;
      default:
        return a < b;
    }
  }

  const collet_program* p_;
  const collet_region* region_;
  std::vector<uint32_t> values_;  // by slot
  std::vector<double> slots_;
  std::vector<Step> steps_;
  std::array<size_t, 2> results_{};
  std::string refusal_;
};

}  // namespace kernel
}  // namespace collet

#endif
