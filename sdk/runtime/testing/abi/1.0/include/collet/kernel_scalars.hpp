/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_SCALARS_HPP
#define COLLET_KERNEL_SCALARS_HPP

/** \file
 * Scalars that the host can work out for itself: the indices of dynamic slices, which frontends compute from a scalar argument
 * by a few ops (is it negative? then add the extent). Where the argument comes by value, they need not be read back from the
 * device in the middle of a program. Included by kernel_backend.hpp.
 */

#include "kernel_plan.hpp"

namespace collet {
namespace kernel {
namespace detail {

/** The scalars of a plan, known or not, in one launch: little-endian bits, to which Array::host may point. */
struct KnownScalars {
  std::vector<uint64_t> bits;
  std::vector<char> known;
};

/** Which scalars of a plan the host can work out, and how. */
class HostScalars {
 public:
  HostScalars() = default;

  HostScalars(const collet_program* program, const Plan& plan) : program_(program) {
    std::map<uint32_t, size_t> makers;  // value -> step
    for (size_t s = 0; s < plan.steps.size(); ++s) {
      for (uint32_t value : plan.steps[s].results) makers[value] = s;
    }
    for (const Step& step : plan.steps) {
      const uint32_t opcode = collet_op_at(program, step.op)->opcode;
      const bool slice = opcode == COLLET_OP_DYNAMIC_SLICE, update = opcode == COLLET_OP_DYNAMIC_UPDATE_SLICE;
      if (!slice && !update) continue;
      for (size_t i = slice ? 1 : 2; i < step.operands.size(); ++i) add(step.operands[i], plan, makers);
    }
  }

  /** Is there anything to work out? */
  bool is_empty() const { return slots_.empty(); }

  /** What is known in this launch. `arguments` are those of the launch. */
  KnownScalars evaluate(const collet_argument* arguments) const {
    KnownScalars out{std::vector<uint64_t>(order_.size(), 0), std::vector<char>(order_.size(), 0)};
    for (size_t i = 0; i < order_.size(); ++i) {
      const Scalar& one = order_[i];
      if (one.data) {
        out.bits[i] = load(one.type, one.data);
        out.known[i] = 1;
      } else if (one.argument != COLLET_NONE) {
        const collet_argument& from = arguments[one.argument];
        if ((from.flags & COLLET_ARG_IMMEDIATE) == 0) continue;
        out.bits[i] = load(one.type, from.immediate);
        out.known[i] = 1;
      } else {
        compute(one, i, &out);
      }
      out.bits[i] = wrapped(one.type, out.bits[i]);
    }
    return out;
  }

  /** Where a value's bits are among those known; null where it is not. */
  const void* find(uint32_t value, const KnownScalars& known) const {
    const auto slot = slots_.find(value);
    if (slot == slots_.end() || !known.known[slot->second]) return nullptr;
    return &known.bits[slot->second];
  }

 private:
  struct Scalar {
    uint32_t type = 0;
    const void* data = nullptr;       // of a constant
    uint32_t argument = COLLET_NONE;  // or by value in the launch
    uint32_t opcode = 0, detail = 0;  // or computed; detail: the direction of a comparison
    std::vector<size_t> operands;     // slots, earlier ones
    uint32_t operand_type = 0;
  };

  /** Gives `value` a slot, behind those that it needs; false where the host cannot work it out. */
  bool add(uint32_t value, const Plan& plan, const std::map<uint32_t, size_t>& makers) {
    if (slots_.count(value)) return true;
    const collet_type* type = collet_value_type(program_, value);
    if (type->elements != 1 || !(index_types | TypeSet{COLLET_TYPE_PRED}).has(type->element)) return false;
    Scalar out;
    out.type = type->element;
    const Place& place = plan.places[value];
    if (place.kind == Place::kConstant) {
      for (const Resident& one : plan.residents) {
        if (one.offset == place.offset) out.data = one.data;
      }
    } else if (place.kind == Place::kArgument) {
      if ((collet_value_at(program_, value)->flags & COLLET_VALUE_SCALAR) == 0) return false;
      out.argument = place.index;
    } else {
      const auto maker = makers.find(value);
      if (maker == makers.end() || !is_known(plan.steps[maker->second])) return false;
      const Step& step = plan.steps[maker->second];
      const collet_op* op = collet_op_at(program_, step.op);
      out.opcode = op->opcode;
      out.operand_type = collet_value_type(program_, step.operands[0])->element;
      if (op->opcode == COLLET_OP_COMPARE) {
        collet_compare_attrs how;
        collet_read_attributes(program_, op, &how, sizeof how);
        out.detail = how.direction;
      }
      for (uint32_t operand : step.operands) {
        if (!add(operand, plan, makers)) return false;
        out.operands.push_back(slots_.at(operand));
      }
    }
    slots_[value] = order_.size();
    order_.push_back(std::move(out));
    return true;
  }

  static bool is_known(const Step& step) { return step.results.size() == 1 && !step.operands.empty(); }

  void compute(const Scalar& one, size_t slot, KnownScalars* all) const {
    for (size_t operand : one.operands) {
      if (!all->known[operand]) return;
    }
    const auto at = [&](size_t i) { return all->bits[one.operands[i]]; };
    const auto less = [&](uint64_t x, uint64_t y) {
      const uint32_t type = one.opcode == COLLET_OP_COMPARE ? one.operand_type : one.type;
      return collet_type_kind(type) == COLLET_KIND_SIGNED ? static_cast<int64_t>(x) < static_cast<int64_t>(y) : x < y;
    };
    uint64_t out = 0;
    switch (one.opcode) {
      case COLLET_OP_ADD:
        out = one.type == COLLET_TYPE_PRED ? at(0) | at(1) : at(0) + at(1);
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
      case COLLET_OP_NOT:
        out = one.type == COLLET_TYPE_PRED ? at(0) ^ 1 : ~at(0);
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
        out = holds(one.detail, less(at(0), at(1)), less(at(1), at(0))) ? 1 : 0;
        break;
      case COLLET_OP_CONVERT:
        out = one.type == COLLET_TYPE_PRED ? (at(0) != 0 ? 1 : 0) : at(0);
        break;
      case COLLET_OP_RESHAPE:
      case COLLET_OP_COPY:
        out = at(0);
        break;
      default:
        return;
    }
    all->bits[slot] = out;
    all->known[slot] = 1;
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

  /** Sign- or zero-extended to 64 bits. */
  static uint64_t wrapped(uint32_t type, uint64_t bits) {
    const uint32_t unused = 64 - 8 * collet_type_bytes(type);
    if (collet_type_kind(type) == COLLET_KIND_SIGNED) {
      return static_cast<uint64_t>(static_cast<int64_t>(bits << unused) >> unused);
    }
    return bits << unused >> unused;
  }
  static uint64_t load(uint32_t type, const void* data) {
    uint64_t bits = 0;
    std::memcpy(&bits, data, collet_type_bytes(type));
    return wrapped(type, bits);
  }

  const collet_program* program_ = nullptr;
  std::map<uint32_t, size_t> slots_;
  std::vector<Scalar> order_;
};

}  // namespace detail
}  // namespace kernel
}  // namespace collet

#endif
