/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_SCALARS_HPP
#define COLLET_KERNEL_SCALARS_HPP

/** \file
 * Computes scalars on the host: the indices of dynamic slices, which frontends compute from a scalar argument by a few
 * ops (such as adding the extent to a negative index), and the counters and conditions of loops. Scalars that depend
 * only on constants and on arguments passed by value need not be read back from the device in the middle of a program.
 * Included by kernel_backend.hpp.
 */

#include "kernel_plan.hpp"

namespace collet {
namespace kernel {
namespace detail {

/** The state of an integer or pred scalar in a run. */
struct ScalarState {
  uint64_t bits = 0;     /**< the value in little-endian bytes, sign- or zero-extended; Array::host may point to it */
  bool known = false;    /**< true if the host knows the value */
  bool on_device = true; /**< true if the value's memory on the device contains it */
};

/** The scalars of a plan that the host tracks, and how it computes them. */
class HostScalars {
 public:
  HostScalars() = default;

  HostScalars(const collet_program* program, const Plan& plan) : program_(program) {
    const bool wanted = std::any_of(plan.steps.begin(), plan.steps.end(), [&](const Step& step) {
      if (!step.is_launch()) return true;
      const uint32_t opcode = collet_op_at(program, step.op)->opcode;
      return step.kind == Step::kScalar || opcode == COLLET_OP_DYNAMIC_SLICE ||
             opcode == COLLET_OP_DYNAMIC_UPDATE_SLICE;
    });
    if (!wanted) return;
    index_.assign(program->values.count, COLLET_NONE);
    for (uint32_t value = 0; value < program->values.count; ++value) {
      const Place& place = plan.places[value];
      const bool argument =
          place.kind == Place::kArgument && (collet_value_at(program, value)->flags & COLLET_VALUE_SCALAR) != 0;
      if (place.kind == Place::kConstant || argument) add(value);
    }
    for (const Step& step : plan.steps) {
      if (step.kind == Step::kLoop || step.kind == Step::kBranch || is_computed(program, step)) {
        for (uint32_t value : step.results) add(value);
      }
    }
    std::map<uint64_t, const void*> data;
    for (const Resident& one : plan.residents) data[one.offset] = one.data;
    for (uint32_t value = 0; value < program->values.count; ++value) {
      if (index_[value] == COLLET_NONE || plan.places[value].kind != Place::kConstant) continue;
      constants_.emplace_back(index_[value], load(type_of(value), data.at(plan.places[value].offset)));
    }
    const collet_region* entry = collet_region_at(program, 0);
    for (uint32_t i = 0; i < entry->arguments.count; ++i) {
      if (index_[entry->arguments.first + i] != COLLET_NONE) arguments_.push_back(i);
    }
  }

  /** True if the host tracks no scalars. */
  bool is_empty() const { return index_.empty(); }

  /** Returns the states at the begin of a launch. */
  std::vector<ScalarState> begin(const collet_argument* arguments) const {
    std::vector<ScalarState> out(count_);
    for (const auto& one : constants_) out[one.first] = {one.second, true, true};
    for (uint32_t i : arguments_) {
      if ((arguments[i].flags & COLLET_ARG_IMMEDIATE) == 0) continue;
      const uint32_t value = collet_region_at(program_, 0)->arguments.first + i;
      out[index_[value]] = {load(type_of(value), arguments[i].immediate), true, true};
    }
    return out;
  }

  /** Returns the state of a value; null if the host does not track it. */
  ScalarState* find(uint32_t value, std::vector<ScalarState>* states) const {
    return index_.empty() || index_[value] == COLLET_NONE ? nullptr : &(*states)[index_[value]];
  }

  /** True if the host can compute the step. */
  static bool is_computed(const collet_program* program, const Step& step) {
    if (!step.is_launch()) return false;
    const collet_op* op = collet_op_at(program, step.op);
    return is_participant_number(op->opcode) || is_host_scalar(op, arrays_of(program, op));
  }

  /** Computes a step from the bits of its operands. */
  uint64_t compute(const Step& step, const std::vector<uint64_t>& operands) const {
    const collet_op* op = collet_op_at(program_, step.op);
    const uint32_t opcode = op->opcode, to = type_of(step.results[0]), from = type_of(step.operands[0]);
    uint32_t direction = 0;
    if (opcode == COLLET_OP_COMPARE) {
      collet_compare_attrs how;
      collet_read_attributes(program_, op, &how, sizeof how);
      direction = how.direction;
    }
    const auto at = [&](size_t i) { return operands[i]; };
    const auto less = [&](uint64_t x, uint64_t y) {
      const uint32_t type = opcode == COLLET_OP_COMPARE ? from : to;
      return collet_type_kind(type) == COLLET_KIND_SIGNED ? static_cast<int64_t>(x) < static_cast<int64_t>(y) : x < y;
    };
    uint64_t out = 0;
    switch (opcode) {
      case COLLET_OP_ADD:
        out = to == COLLET_TYPE_PRED ? at(0) | at(1) : at(0) + at(1);
        break;
      case COLLET_OP_SUBTRACT:
        out = at(0) - at(1);
        break;
      case COLLET_OP_MULTIPLY:
        out = at(0) * at(1);
        break;
      case COLLET_OP_AND:
        out = at(0) & at(1);
        break;
      case COLLET_OP_OR:
        out = at(0) | at(1);
        break;
      case COLLET_OP_XOR:
        out = at(0) ^ at(1);
        break;
      case COLLET_OP_NOT:
        out = to == COLLET_TYPE_PRED ? at(0) ^ 1 : ~at(0);
        break;
      case COLLET_OP_NEGATE:
        out = UINT64_C(0) - at(0);
        break;
      case COLLET_OP_MINIMUM:
        out = less(at(0), at(1)) ? at(0) : at(1);
        break;
      case COLLET_OP_MAXIMUM:
        out = less(at(0), at(1)) ? at(1) : at(0);
        break;
      case COLLET_OP_CLAMP:  // min(max(low, x), high)
        out = less(at(0), at(1)) ? at(1) : at(0);
        out = less(at(2), out) ? at(2) : out;
        break;
      case COLLET_OP_SELECT:
        out = at(0) != 0 ? at(1) : at(2);
        break;
      case COLLET_OP_COMPARE:
        out = holds(direction, less(at(0), at(1)), less(at(1), at(0))) ? 1 : 0;
        break;
      case COLLET_OP_CONVERT:
        out = to == COLLET_TYPE_PRED ? (at(0) != 0 ? 1 : 0) : at(0);
        break;
      case COLLET_OP_RESHAPE:
      case COLLET_OP_COPY:
        out = at(0);
        break;
      default:
        throw Error(COLLET_INTERNAL, "an op that is none of a host scalar");
    }
    return wrapped(to, out);
  }

  /** Returns the bits of a scalar in memory. */
  static uint64_t load(uint32_t type, const void* data) {
    uint64_t bits = 0;
    std::memcpy(&bits, data, std::min<size_t>(collet_type_bytes(type), sizeof bits));
    return wrapped(type, bits);
  }

 private:
  uint32_t type_of(uint32_t value) const { return collet_value_type(program_, value)->element; }

  void add(uint32_t value) {
    const collet_type* type = collet_value_type(program_, value);
    if (type->elements != 1 || !host_scalar_types.has(type->element) || index_[value] != COLLET_NONE) return;
    index_[value] = count_++;
  }

  static bool holds(uint32_t direction, bool less, bool greater) {
    switch (direction) {
      case COLLET_DIRECTION_EQ:
        return !less && !greater;
      case COLLET_DIRECTION_NE:
        return less || greater;
      case COLLET_DIRECTION_LT:
        return less;
      case COLLET_DIRECTION_LE:
        return !greater;
      case COLLET_DIRECTION_GT:
        return greater;
      default:
        return !less;
    }
  }

  /** Returns the bits sign- or zero-extended to 64 bits. */
  static uint64_t wrapped(uint32_t type, uint64_t bits) {
    const uint32_t unused = 64 - 8 * collet_type_bytes(type);
    if (collet_type_kind(type) == COLLET_KIND_SIGNED) {
      return static_cast<uint64_t>(static_cast<int64_t>(bits << unused) >> unused);
    }
    return bits << unused >> unused;
  }
  const collet_program* program_ = nullptr;
  std::vector<uint32_t> index_;  // index of the state by value; empty if no scalars are tracked
  uint32_t count_ = 0;
  std::vector<std::pair<uint32_t, uint64_t>> constants_;
  std::vector<uint32_t> arguments_;  // arguments that may be passed by value
};

}  // namespace detail
}  // namespace kernel
}  // namespace collet

#endif
