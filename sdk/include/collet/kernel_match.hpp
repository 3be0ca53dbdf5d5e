/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_MATCH_HPP
#define COLLET_KERNEL_MATCH_HPP

/** \file
 * Analyses programs: finds the op that defines a value and its users, and matches regions against patterns. A pattern,
 * called a shape here, is an expression. It is matched by structure, for any order of ops and of commutative operands:
 *
 *     using namespace collet::kernel::shape;
 *     const Shape gate = multiply(input(0), logistic(input(1)));
 *     if (Matched found = match(op, gate)) use(op.operand(found.operand(0)), op.operand(found.operand(1)));
 *
 * A compiler that looks for groups in a program of its own matches parts of it:
 *
 *     const collet::kernel::Matcher matcher(p, 0);
 *     const Shape product = multiply(input(0), logistic(input(1)));
 *     for (uint32_t i = 0; i < matcher.graph().op_count(); ++i) {
 *       const Matched found = matcher.match_part(product, matcher.graph().op(i)->results.first);
 *       if (found && !matcher.is_used_elsewhere(found)) use(found.ops(), found.operand(0), found.operand(1));
 *     }
 */

#include <cmath>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "kernel_floats.hpp"
#include "kernel_shapes.hpp"

namespace collet {
namespace kernel {

/** The definition and the users of each value of a region, for matchers and for compilers that build their own graph. */
class RegionGraph {
 public:
  /** Analyses region number `region` of a program; 0 is the entry. The program must outlive this object. */
  explicit RegionGraph(const collet_program* program, uint32_t region = 0)
      : program_(program), region_(collet_region_at(program, region)), users_(program->values.count) {
    for (uint32_t i = 0; i < region_->ops.count; ++i) {
      const collet_op* one = op(i);
      for (uint32_t k = 0; k < one->operands.count; ++k) {
        users_[collet_operand(program_, one, k)].push_back(region_->ops.first + i);
      }
    }
  }

  /** The program. */
  const collet_program* program() const { return program_; }
  /** Returns the number of ops of the region. */
  uint32_t op_count() const { return region_->ops.count; }
  /** Returns op number `i` of the region, in the order of its schedule. */
  const collet_op* op(uint32_t i) const { return collet_op_at(program_, region_->ops.first + i); }
  /** Returns the number of arguments. */
  uint32_t argument_count() const { return region_->arguments.count; }
  /** Returns the number of results. */
  uint32_t result_count() const { return region_->results.count; }
  /** Returns the value that is result number `i`. */
  uint32_t result(uint32_t i = 0) const { return collet_ref_at(program_, region_->results.first + i); }
  /** Returns the number of the argument that `value` is; COLLET_NONE if an op defines it. */
  uint32_t argument(uint32_t value) const {
    const uint32_t first = region_->arguments.first;
    return value >= first && value - first < region_->arguments.count ? value - first : COLLET_NONE;
  }
  /** Returns the op that defines `value`; null for an argument. */
  const collet_op* producer(uint32_t value) const {
    return argument(value) != COLLET_NONE ? nullptr
                                          : collet_op_at(program_, collet_value_at(program_, value)->definition);
  }
  /** Returns the ids of the ops that read `value`; an op that reads it twice is listed twice. */
  const std::vector<uint32_t>& users(uint32_t value) const { return users_[value]; }
  /** Returns the arrays of an op, operands first, then results, without memory. They can be passed to Op for an op inside
   * a region. */
  std::vector<Array> arrays(const collet_op* op) const {
    std::vector<Array> out;
    for (uint32_t i = 0; i < op->operands.count; ++i) out.push_back(array(collet_operand(program_, op, i)));
    for (uint32_t i = 0; i < op->results.count; ++i) out.push_back(array(op->results.first + i));
    return out;
  }
  /** Returns type and dimensions of a value. */
  Array array(uint32_t value) const {
    const collet_type* type = collet_value_type(program_, value);
    Array out;
    out.type = type->element;
    out.rank = type->dims.count;
    out.dims = collet_integers(program_, type->dims);
    out.elements = type->elements;
    out.bytes = type->bytes;
    return out;
  }
  /** Calls visit(op) for each op, after all ops in its regions. */
  template <class Visit>
  static void for_each_op(const collet_program* program, const Visit& visit, uint32_t region = 0) {
    const collet_region* here = collet_region_at(program, region);
    for (uint32_t i = 0; i < here->ops.count; ++i) {
      const collet_op* op = collet_op_at(program, here->ops.first + i);
      for (uint32_t r = 0; r < op->regions.count; ++r) for_each_op(program, visit, op->regions.first + r);
      visit(op);
    }
  }

 private:
  const collet_program* program_;
  const collet_region* region_;
  std::vector<std::vector<uint32_t>> users_;
};

/** The former name of RegionGraph. */
using Walker [[deprecated("it is called RegionGraph")]] = RegionGraph;

/** The result of a match; it converts to true if the shape matched. */
class Matched {
 public:
  /** True if the shape matched. */
  explicit operator bool() const { return matched_; }
  /** Returns the number of the operand that matched input number `i` of the shape; of a part, the id of the value. */
  uint32_t operand(uint32_t i) const { return i < operands_.size() ? operands_[i] : COLLET_NONE; }
  /** Returns the value of the constant that matched number `i` of the shape. */
  double number(uint32_t i) const { return i < numbers_.size() ? numbers_[i] : std::nan(""); }
  /** Returns the ids of the ops that are part of the match, in ascending order. */
  const std::vector<uint32_t>& ops() const { return ops_; }

 private:
  friend class Matcher;
  bool matched_ = false;
  std::vector<uint32_t> operands_;
  std::vector<double> numbers_;
  std::vector<uint32_t> ops_;
};

/** Expressions that are matched with regions. */
namespace shape {

/** An expression. It is cheap to copy. */
struct Shape {
  /** Kinds of nodes. */
  enum Kind { kInput, kOp, kNumber, kAnyNumber, kReduce, kSpread };
  Kind kind = kInput;
  uint32_t index = 0; /**< number of an input or a constant; opcode of an op; combination of a reduction */
  double number = 0;  /**< value of a constant */
  std::vector<std::shared_ptr<const Shape>> parts;
};

/** Matches an operand, whose number Matched::operand(i) returns. Two inputs with the same i must be the same value. */
inline Shape input(uint32_t i) {
  return {Shape::kInput, i, 0, {}};
}
/** Matches a constant, possibly broadcast, whose elements all have this value, to the precision of its type: to 2^-8 of it in
 * bf16, 2^-11 in f16, 2^-22 in f32 and f64, and exactly in integers. Where a conversion stands behind the constant, the less
 * precise type decides. Where it was folded, a constant of floats has exactly this value, rounded to bf16 or f16; that matches, too. */
inline Shape number(double value) {
  return {Shape::kNumber, 0, value, {}};
}
/** Matches a constant whose elements are all equal; Matched::number(i) returns their value. */
inline Shape any_number(uint32_t i) {
  return {Shape::kAnyNumber, i, 0, {}};
}
/** Matches an op with these operands; commutative operands match in any order. Attributes are ignored, so do not use this
 * for ops whose attributes change what they compute. */
template <class... Parts>
Shape op(uint32_t opcode, const Parts&... parts) {
  return {Shape::kOp, opcode, 0, {std::make_shared<const Shape>(parts)...}};
}
/** Matches a reduce of the last dimension by COLLET_COMBINE_* whose initial value is the identity. */
inline Shape reduce_last(uint32_t combine, const Shape& what) {
  return {Shape::kReduce, combine, 0, {std::make_shared<const Shape>(what)}};
}
/** Matches a broadcast of `what` along the last dimension or, if `last` is false, along all but the last. A reshape may
 * precede it. */
inline Shape spread(const Shape& what, bool last = true) {
  return {Shape::kSpread, last ? 1u : 0u, 0, {std::make_shared<const Shape>(what)}};
}
/** Matches x + y. */
inline Shape add(const Shape& x, const Shape& y) {
  return op(COLLET_OP_ADD, x, y);
}
/** Matches x - y. */
inline Shape subtract(const Shape& x, const Shape& y) {
  return op(COLLET_OP_SUBTRACT, x, y);
}
/** Matches x * y. */
inline Shape multiply(const Shape& x, const Shape& y) {
  return op(COLLET_OP_MULTIPLY, x, y);
}
/** Matches x / y. */
inline Shape divide(const Shape& x, const Shape& y) {
  return op(COLLET_OP_DIVIDE, x, y);
}
/** Matches exp(x). */
inline Shape exponential(const Shape& x) {
  return op(COLLET_OP_EXPONENTIAL, x);
}
/** Matches tanh(x). */
inline Shape tanh(const Shape& x) {
  return op(COLLET_OP_TANH, x);
}
/** Matches 1 / (1 + exp(-x)). */
inline Shape logistic(const Shape& x) {
  return op(COLLET_OP_LOGISTIC, x);
}
/** Matches 1 / sqrt(x). */
inline Shape rsqrt(const Shape& x) {
  return op(COLLET_OP_RSQRT, x);
}

}  // namespace shape

/** Matches shapes with a region. */
class Matcher {
 public:
  /** `region` is the number of the region in the program. */
  Matcher(const collet_program* program, uint32_t region) : graph_(program, region) {}

  /** Matches the region's only result with a shape. All ops of the region must be part of the match. */
  Matched match(const shape::Shape& what) const {
    Matched out;
    if (graph_.result_count() != 1) return out;
    State state;
    out.matched_ = visit(what, graph_.result(), &state, [&](State* last) {
      note(*last, &out);
      return out.ops_.size() == graph_.op_count();
    });
    return out.matched_ ? out : Matched();
  }

  /** Matches a value of the region with a shape, wherever it stands there. Inputs match any value: Matched::operand returns
   * its id. Other ops of the region may use what the match computes: see is_used_elsewhere. */
  Matched match_part(const shape::Shape& what, uint32_t value) const {
    Matched out;
    State state;
    state.is_part = true;
    out.matched_ = visit(what, value, &state, [&](State* last) {
      note(*last, &out);
      return true;
    });
    return out;
  }

  /** True if a value that an op of a match computes, other than the last one, is used by an op that is not part of it, or is a
   * result of the region. Constants are not counted: they can be repeated. */
  bool is_used_elsewhere(const Matched& match) const {
    for (const uint32_t id : match.ops()) {
      const collet_op* op = collet_op_at(program(), id);
      if (id == match.ops().back() || op->opcode == COLLET_OP_CONSTANT) continue;
      const uint32_t value = op->results.first;
      for (const uint32_t user : graph_.users(value)) {
        if (!std::binary_search(match.ops().begin(), match.ops().end(), user)) return true;
      }
      for (uint32_t r = 0; r < graph_.result_count(); ++r) {
        if (graph_.result(r) == value) return true;
      }
    }
    return false;
  }

  /** The definitions and users of the region's values. */
  const RegionGraph& graph() const { return graph_; }

 private:
  struct State {
    std::vector<uint32_t> operands;
    std::vector<double> numbers;
    std::vector<uint32_t> ops;  // ids of the ops that are part of the match
    bool is_part = false;       // inputs may be any values
  };
  using Next = std::function<bool(State*)>;

  static void note(const State& state, Matched* out) {
    out->operands_ = state.operands;
    out->numbers_ = state.numbers;
    out->ops_ = state.ops;
    std::sort(out->ops_.begin(), out->ops_.end());
    out->ops_.erase(std::unique(out->ops_.begin(), out->ops_.end()), out->ops_.end());
  }

  const collet_program* program() const { return graph_.program(); }
  Array array(uint32_t value) const { return graph_.array(value); }
  void take(State* state, uint32_t value) const { state->ops.push_back(collet_value_at(program(), value)->definition); }
  uint32_t operand(const collet_op* op, uint32_t i) const { return collet_operand(program(), op, i); }

  /** Matches `value`, and then, through `next`, the rest of the shape. Backtracks if that fails. */
  bool visit(const shape::Shape& what, uint32_t value, State* state, const Next& next) const {
    using shape::Shape;
    if (what.kind == Shape::kInput) return visit_input(what, value, state, next);
    if (what.kind == Shape::kNumber || what.kind == Shape::kAnyNumber) return visit_number(what, value, state, next);
    const collet_op* op = graph_.producer(value);
    if (!op || op->results.count != 1) return false;
    State now = *state;
    take(&now, value);
    if (what.kind == Shape::kReduce) {
      return is_last_reduce(op, what.index, &now) && visit(*what.parts[0], operand(op, 0), &now, next);
    }
    if (what.kind == Shape::kSpread) return visit_spread(what, op, &now, next);
    if (op->opcode != what.index || op->operands.count != what.parts.size()) return false;
    std::vector<uint32_t> values;
    for (uint32_t i = 0; i < op->operands.count; ++i) values.push_back(operand(op, i));
    if (visit_parts(what, values, 0, &now, next)) return true;
    if (values.size() != 2 || !commutes(op->opcode)) return false;
    std::swap(values[0], values[1]);
    return visit_parts(what, values, 0, &now, next);
  }

  bool visit_parts(const shape::Shape& what, const std::vector<uint32_t>& values, size_t i, State* state,
                   const Next& next) const {
    if (i == values.size()) return next(state);
    return visit(*what.parts[i], values[i], state,
                 [&](State* after) { return visit_parts(what, values, i + 1, after, next); });
  }

  bool visit_input(const shape::Shape& what, uint32_t value, State* state, const Next& next) const {
    const uint32_t argument = state->is_part ? value : graph_.argument(value);
    if (argument == COLLET_NONE) return false;
    State now = *state;
    if (now.operands.size() <= what.index) now.operands.resize(what.index + 1, COLLET_NONE);
    uint32_t& bound = now.operands[what.index];
    if (bound != COLLET_NONE && bound != argument) return false;
    bound = argument;
    return next(&now);
  }

  bool visit_number(const shape::Shape& what, uint32_t value, State* state, const Next& next) const {
    State now = *state;
    Number found;
    if (!is_number(value, &found, &now)) return false;
    if (what.kind == shape::Shape::kNumber) return is_same(found, what.number) && next(&now);
    if (now.numbers.size() <= what.index) now.numbers.resize(what.index + 1, std::nan(""));
    double& bound = now.numbers[what.index];
    if (!std::isnan(bound) && bound != found.value) return false;
    bound = found.value;
    return next(&now);
  }

  /** A constant as an op reads it. */
  struct Number {
    double value = 0;
    double tolerance = 0; /**< relative: the largest of those of its types */
  };

  /** Returns what a number may be off by in a type, relative to it. */
  static double tolerance_of(uint32_t type) {
    switch (type) {
      case COLLET_TYPE_BF16:
        return 1.0 / 256;
      case COLLET_TYPE_F16:
        return 1.0 / 2048;
      case COLLET_TYPE_F32:
      case COLLET_TYPE_F64:  // sources print few digits, and compute in f32
        return 1.0 / (1 << 22);
      default:
        return 0;
    }
  }

  static bool is_same(const Number& found, double wanted) {
    if (found.value == wanted) return true;
    if (found.tolerance == 0) return false;
    const auto is_within = [&](double tolerance) {
      return std::fabs(found.value - wanted) < std::fabs(wanted) * tolerance;
    };
    const bool was_rounded = found.value == static_cast<double>(narrow<bfloat16>(wanted)) ||
                             found.value == static_cast<double>(narrow<half>(wanted));
    return is_within(found.tolerance) || (was_rounded && is_within(tolerance_of(COLLET_TYPE_BF16)));
  }

  /** Matches a broadcast along the last dimension, or along all but the last. */
  bool visit_spread(const shape::Shape& what, const collet_op* op, State* state, const Next& next) const {
    if (op->opcode != COLLET_OP_BROADCAST) return false;
    collet_broadcast_attrs attributes;
    collet_read_attributes(program(), op, &attributes, sizeof attributes);
    const int64_t* dims = collet_integers(program(), attributes.dimensions);
    const Array whole = array(op->results.first);
    if (whole.rank == 0) return false;
    uint32_t from = operand(op, 0);
    if (what.index == 0) {
      if (attributes.dimensions.count != 1 || dims[0] != whole.rank - 1) return false;
    } else {
      if (attributes.dimensions.count != whole.rank - 1) return false;
      for (uint32_t d = 0; d + 1 < whole.rank; ++d) {
        if (dims[d] != d) return false;
      }
    }
    const collet_op* maker = graph_.producer(from);
    if (maker && maker->opcode == COLLET_OP_RESHAPE) {
      take(state, from);
      from = operand(maker, 0);
    }
    return visit(*what.parts[0], from, state, next);
  }

  bool is_last_reduce(const collet_op* op, uint32_t combine, State* state) const {
    if (op->opcode != COLLET_OP_REDUCE || op->operands.count != 2) return false;
    collet_dimensions_attrs attributes;
    collet_read_attributes(program(), op, &attributes, sizeof attributes);
    const Array from = array(operand(op, 0));
    if (attributes.dimensions.count != 1 || collet_integers(program(), attributes.dimensions)[0] != from.rank - 1)
      return false;
    if (collet_region_at(program(), op->regions.first)->combine != combine) return false;
    Number init;
    if (!is_number(operand(op, 1), &init, state)) return false;
    const double least = -std::numeric_limits<double>::infinity();
    const double neutral = combine == COLLET_COMBINE_ADD        ? 0
                           : combine == COLLET_COMBINE_MULTIPLY ? 1
                           : combine == COLLET_COMBINE_MAXIMUM  ? least
                                                                : -least;
    return init.value == neutral;
  }

  /** True if `value` is a constant with equal elements, possibly broadcast and converted. */
  bool is_number(uint32_t value, Number* out, State* state) const {
    const collet_op* op = graph_.producer(value);
    if (!op) return false;
    take(state, value);
    if (op->opcode == COLLET_OP_BROADCAST || op->opcode == COLLET_OP_RESHAPE) {
      return is_number(operand(op, 0), out, state);
    }
    const Array whole = array(value);
    if (op->opcode == COLLET_OP_CONVERT) {
      if (!is_number(operand(op, 0), out, state)) return false;
      out->tolerance = std::max(out->tolerance, tolerance_of(whole.type));
      return convert(whole.type, &out->value);
    }
    if (op->opcode != COLLET_OP_CONSTANT) return false;
    collet_constant_attrs attributes;
    collet_read_attributes(program(), op, &attributes, sizeof attributes);
    const collet_constant* constant = collet_constant_at(program(), attributes.constant);
    const auto* data = static_cast<const char*>(collet_constant_data(program(), constant));
    const size_t size = collet_type_bytes(whole.type);
    if (!data || whole.elements == 0) return false;
    for (uint64_t i = 1; i < whole.elements; ++i) {
      if (std::memcmp(data, data + i * size, size) != 0) return false;
    }
    out->tolerance = tolerance_of(whole.type);
    return load(whole.type, data, &out->value);
  }

  /** Rounds a number to a type that `load` knows; else false. */
  static bool convert(uint32_t type, double* number) {
    switch (type) {
      case COLLET_TYPE_F32:
        *number = static_cast<double>(static_cast<float>(*number));
        return true;
      case COLLET_TYPE_F64:
        return true;
      case COLLET_TYPE_BF16:
        *number = static_cast<double>(narrow<bfloat16>(*number));
        return true;
      case COLLET_TYPE_F16:
        *number = static_cast<double>(narrow<half>(*number));
        return true;
      case COLLET_TYPE_S32:
        *number = static_cast<double>(converted<int32_t>(*number));
        return true;
      default:
        return false;
    }
  }

  static bool load(uint32_t type, const char* data, double* out) {
    const auto as = [&](auto zero) {
      std::memcpy(static_cast<void*>(&zero), data, sizeof zero);
      *out = static_cast<double>(zero);
      return true;
    };
    switch (type) {
      case COLLET_TYPE_F32:
        return as(float{});
      case COLLET_TYPE_F64:
        return as(double{});
      case COLLET_TYPE_BF16:
        return as(bfloat16{});
      case COLLET_TYPE_F16:
        return as(half{});
      case COLLET_TYPE_S32:
        return as(int32_t{});
      default:
        return false;
    }
  }

  static bool commutes(uint32_t opcode) {
    switch (opcode) {
#define COLLET_OP(id, NAME, text, CLASS, family, min, max, Record, REGIONS, TYPES, traits, ulp, since) \
  case id:                                                                                             \
    return ((traits) & COLLET_OP_COMMUTES) != 0;
#include "ops.def"
      default:
        return false;
    }
  }

  RegionGraph graph_;
};

/** Matches the first region of `op`, a fusion or a call of a pattern, with `what`. */
inline Matched match(const Op& op, const shape::Shape& what) {
  if (op.region_count() == 0) return {};
  return Matcher(op.program(), op.raw().regions.first).match(what);
}

/** Matches x * y + z. Its inputs are 0, 1 and 2, all with the result's shape. */
inline Matched match_multiply_add(const Op& op) {
  using namespace shape;
  return match(op, add(multiply(input(0), input(1)), input(2)));
}

/** Matches exp(x - max(x)) / sum(exp(x - max(x))) along the last dimension. Input 0 is x. */
inline Matched match_softmax(const Op& op) {
  using namespace shape;
  const Shape shifted = exponential(subtract(input(0), spread(reduce_last(COLLET_COMBINE_MAXIMUM, input(0)))));
  return match(op, divide(shifted, spread(reduce_last(COLLET_COMBINE_ADD, shifted))));
}

/** Matches x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), with the products in any of the usual orders. Input
 * 0 is x. */
inline Matched match_gelu(const Op& op) {
  using namespace shape;
  const Shape x = input(0);
  const Shape cubes[] = {multiply(x, multiply(x, x)), shape::op(COLLET_OP_POWER, x, number(3))};
  for (const Shape& cube : cubes) {
    const Shape inner = multiply(number(0.7978845608), add(x, multiply(number(0.044715), cube)));
    const Shape rest = add(number(1), shape::tanh(inner));
    for (const Shape& whole : {multiply(x, multiply(number(0.5), rest)), multiply(multiply(number(0.5), x), rest),
                               multiply(number(0.5), multiply(x, rest))}) {
      if (Matched found = match(op, whole)) return found;
    }
  }
  return {};
}

/** Matches (x - mean) * rsqrt(mean((x - mean)^2) + epsilon) * scale + shift along the last dimension. Inputs 0, 1 and 2
 * are x, scale and shift; number 0 is the count by which sums are divided, or its inverse, and number 1 is epsilon. */
inline Matched match_layer_norm(const Op& op) {
  using namespace shape;
  for (const bool by_product : {false, true}) {
    const auto mean = [&](const Shape& what) {
      const Shape sum = reduce_last(COLLET_COMBINE_ADD, what);
      return by_product ? multiply(sum, any_number(0)) : divide(sum, any_number(0));
    };
    const Shape centred = subtract(input(0), spread(mean(input(0))));
    const Shape variance = mean(multiply(centred, centred));
    const Shape normal = multiply(centred, spread(rsqrt(add(variance, any_number(1)))));
    const Shape whole = add(multiply(normal, spread(input(1), false)), spread(input(2), false));
    if (Matched found = match(op, whole)) return found;
  }
  return {};
}

/** Matches (x w) * scale, with w converted from integers and a scale for each column. Inputs 0, 1 and 2 are x, w and
 * scale. The caller must check the dimensions of the dot, which is the only op of its opcode in the region. */
inline Matched match_quantized_dot(const Op& op) {
  using namespace shape;
  const Shape product = shape::op(COLLET_OP_DOT, input(0), shape::op(COLLET_OP_CONVERT, input(1)));
  return match(op, multiply(product, spread(input(2), false)));
}

}  // namespace kernel
}  // namespace collet

#endif
