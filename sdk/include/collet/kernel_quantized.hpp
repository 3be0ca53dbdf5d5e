/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_QUANTIZED_HPP
#define COLLET_KERNEL_QUANTIZED_HPP

/** \file
 * Reads what a call of one of the quantized patterns (docs/patterns.md) states: integer_dot, integer_convolution,
 * integer_add, scaled_dot, scaled_convolution, dequantized_dot, requantize and quantize. A row with Kernel::pattern uses it in `takes`
 * to see whether the device can do all that the group asks for, in `prepare` to make a command of it, or in `run`:
 *
 *     const QuantizedGroup group(op);
 *     const int32_t sum = 1000;
 *     const float value = group.result(op, sum, 0, [](const Array&, uint64_t) { return 0.5; });
 */

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernel_floats.hpp"
#include "kernel_match.hpp"

namespace collet {
namespace kernel {

/** A number of a group, or the operand that holds several. */
struct GroupValue {
  bool given = false;             /**< false: the group has none */
  uint32_t operand = COLLET_NONE; /**< the operand that holds the values; COLLET_NONE: `number` is the only one */
  double number = 0;
  /** The dimensions of the result along which the operand runs, outermost first; none for one value. Not known of
   * `lhs_scale` and its like, which the region of the group spreads. */
  std::vector<int64_t> dims;
};

/** The attributes of a quantized pattern, in the order in which they act on a sum of products:
 *
 *     x = (sum + bias + second_bias, if these are integers) * factor * scale * second_scale + bias, if it is floats
 *     x = min(max(x, activation_low), activation_high)
 *     x = x / result_scale or x * result_factor
 *     q = round(x + zero_point) or round(x) + zero_point, and then min(max(q, low), high)
 *
 * The sum with its bias is s32. The rest is computed in f32; where types with fewer digits are named, the result of each
 * step is rounded to them: to `scale_type` up to the scales, and to `step_type` from there on. The sum of an integer
 * product is that of (lhs - lhs_zero_point) * (rhs - rhs_zero_point); that of integer_add is what `added` returns. */
struct QuantizedGroup {
  /** The features of groups that this version of the header computes, for Kernel::features and its like, of a row that uses
   * `zero_of`, `result` and `added`. Padding is not among them: the row itself has to read `lhs_pad_value`. Nor are blocks,
   * whose scales the region spreads. */
  static constexpr uint32_t kFeatures =
      COLLET_FEATURE_CHANNELS | COLLET_FEATURE_ZERO_POINTS | COLLET_FEATURE_SHORT_FLOATS | COLLET_FEATURE_TERMS;
  /** Of integer products and of integer_add; where they are not given, they are 0. */
  GroupValue lhs_zero_point, rhs_zero_point;
  GroupValue lhs_scale, rhs_scale; /**< of integer_add; `dims` are known only there */
  bool minus_rhs = false;          /**< integer_add subtracts */
  GroupValue factor, scale, second_scale, bias, second_bias, result_scale, result_factor;
  bool integer_bias = false; /**< the biases are added to the sum, before it is converted; else there is one at most */
  bool minus_bias = false, minus_second_bias = false; /**< that bias of integers is subtracted */
  double activation_low = -std::numeric_limits<double>::infinity();
  double activation_high = std::numeric_limits<double>::infinity();
  bool quantizes = false;        /**< the result is integers: what follows holds */
  bool zero_point_first = false; /**< the zero point is added before rounding */
  bool rounds_away = false;      /**< ties are rounded away from zero; else to even */
  double zero_point = 0, low = 0, high = 0;
  uint32_t scale_type = COLLET_TYPE_F32; /**< COLLET_TYPE_F32, _BF16 or _F16 */
  uint32_t step_type = COLLET_TYPE_F32;  /**< the same */

  /** Reads the attributes of a call. Throws Error where they are none of such a pattern. */
  explicit QuantizedGroup(const Op& op) : entries_(op.dictionary()) {
    const std::string operands = text("operands");
    for (size_t at = 0; at < operands.size();) {
      const size_t end = std::min(operands.find(',', at), operands.size());
      names_.push_back(operands.substr(at, end - at));
      at = end + 1;
    }
    if (names_.size() != op.operand_count()) {
      throw Error(COLLET_INVALID_ARGUMENT, op.name() + " is no group whose attributes name its operands");
    }
    lhs_zero_point = value("lhs_zero_point");
    rhs_zero_point = value("rhs_zero_point");
    lhs_scale = value("lhs_scale");
    rhs_scale = value("rhs_scale");
    minus_rhs = text("rhs_sign") == "minus";
    factor = value("factor");
    scale = value("scale");
    second_scale = value("second_scale");
    bias = value("bias");
    second_bias = value("second_bias");
    minus_bias = text("bias_sign") == "minus";
    minus_second_bias = text("second_bias_sign") == "minus";
    result_scale = value("result_scale");
    result_factor = value("result_factor");
    integer_bias = text("bias_type") == "integer";
    if (text("activation") == "relu") activation_low = 0;
    activation_low = number("activation_low", activation_low);
    activation_high = number("activation_high", activation_high);
    quantizes = find("low") != nullptr;
    low = number("low", 0);
    high = number("high", 0);
    zero_point = number("zero_point", 0);
    zero_point_first = text("zero_point_added") == "before_rounding";
    rounds_away = text("rounding") == "away";
    scale_type = float_type("scale_type");
    step_type = float_type("step_type");
  }

  /** Returns lhs_zero_point or rhs_zero_point for result number `element`. `at` is that of `result`. */
  template <class At>
  int32_t zero_of(const GroupValue& zero, const Op& op, uint64_t element, const At& at) const {
    return zero.given ? static_cast<int32_t>(read(zero, op, element, at)) : 0;
  }

  /** Returns the value of a name such as "lhs_scale" or "weights_zero_point". */
  GroupValue value(const std::string& name) const {
    GroupValue out;
    for (uint32_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == name) out.given = true, out.operand = i;
    }
    if (const DictionaryEntry* entry = find(name)) out.given = true, out.number = entry->number();
    out.dims = integers(name + "_dims");
    return out;
  }
  /** Returns an attribute as text; empty if there is none. */
  std::string text(const std::string& name) const {
    const DictionaryEntry* entry = find(name);
    return entry ? entry->text : std::string();
  }
  /** Returns an attribute as a number. */
  double number(const std::string& name, double otherwise) const {
    const DictionaryEntry* entry = find(name);
    return entry ? entry->number() : otherwise;
  }

  /** Returns an attribute that is a list of integers, such as "lhs_pad_low"; empty if there is none. */
  std::vector<int64_t> integers(const std::string& name) const {
    std::vector<int64_t> out;
    const DictionaryEntry* entry = find(name);
    for (size_t i = 0; entry && i < entry->count(); ++i) out.push_back(entry->integer(i));
    return out;
  }

  /** Returns the stored integer of a value, with zero point, rounding and clamp, but without the result's scale. The value
   * must not be NaN. */
  float quantized(float x) const {
    const auto zero = static_cast<float>(zero_point);
    if (zero_point_first) x = rounded(x + zero, step_type);
    x = rounds_away ? std::round(x) : std::nearbyint(x);
    if (!zero_point_first) x = rounded(x + zero, step_type);
    return std::min(std::max(x, static_cast<float>(low)), static_cast<float>(high));
  }

  /** Returns the sum of an integer_add of the stored integers `lhs` and `rhs` as a real number, for `result`:
   * (lhs - lhs_zero_point) * lhs_scale + or - (rhs - rhs_zero_point) * rhs_scale, each step rounded to `step_type`. */
  template <class At>
  float added(const Op& op, int32_t lhs, int32_t rhs, uint64_t element, const At& at) const {
    const auto real = [&](int32_t stored, const GroupValue& zero, const GroupValue& by) {
      const float x = rounded(static_cast<double>(stored - zero_of(zero, op, element, at)), step_type);
      return by.given ? rounded(x * static_cast<float>(read(by, op, element, at)), step_type) : x;
    };
    const float x = real(lhs, lhs_zero_point, lhs_scale), y = real(rhs, rhs_zero_point, rhs_scale);
    return rounded(minus_rhs ? x - y : x + y, step_type);
  }

  /** Returns result number `element` (row-major) of a product whose sum of products is `sum`: an integer if the group
   * quantizes. `at(array, i)` returns element `i` of an operand as a double. */
  template <class Sum, class At>
  float result(const Op& op, Sum sum, uint64_t element, const At& at) const {
    const auto of = [&](const GroupValue& one) { return read(one, op, element, at); };
    if (integer_bias) sum += static_cast<Sum>(minus_bias ? -of(bias) : of(bias));
    if (second_bias.given) sum += static_cast<Sum>(minus_second_bias ? -of(second_bias) : of(second_bias));
    float x = rounded(static_cast<double>(sum), scale_type);
    for (const GroupValue* by : {&factor, &scale, &second_scale}) {
      if (by->given) x = rounded(x * static_cast<float>(of(*by)), scale_type);
    }
    x = rounded(x, step_type);
    if (bias.given && !integer_bias) x = rounded(x + static_cast<float>(of(bias)), step_type);
    x = std::min(std::max(x, static_cast<float>(activation_low)), static_cast<float>(activation_high));
    if (result_scale.given) x = rounded(x / static_cast<float>(of(result_scale)), step_type);
    if (result_factor.given) x = rounded(x * static_cast<float>(of(result_factor)), step_type);
    return quantizes ? quantized(x) : x;
  }

  /** Returns the row-major place, in an array that runs along dimensions `dims` of `whole`, of what belongs to element
   * `element` of `whole`. */
  static uint64_t place(const Array& whole, uint64_t element, const std::vector<int64_t>& dims) {
    const std::vector<int64_t> strides = strides_of(whole);
    uint64_t out = 0;
    for (const int64_t dim : dims) {
      const auto d = static_cast<size_t>(dim);
      const auto extent = static_cast<uint64_t>(whole.dims[d]);
      out = out * extent + element / static_cast<uint64_t>(strides[d]) % extent;
    }
    return out;
  }

 private:
  template <class At>
  double read(const GroupValue& one, const Op& op, uint64_t element, const At& at) const {
    if (one.operand == COLLET_NONE) return one.number;
    return static_cast<double>(at(op.operand(one.operand), place(op.result(), element, one.dims)));
  }

  /** Returns x, rounded once to a type. */
  static float rounded(double x, uint32_t type) {
    if (type == COLLET_TYPE_BF16) return static_cast<float>(narrow<bfloat16>(x));
    if (type == COLLET_TYPE_F16) return static_cast<float>(narrow<half>(x));
    return static_cast<float>(x);
  }

  uint32_t float_type(const char* name) const {
    const std::string type = text(name);
    if (type.empty() || type == "f32") return COLLET_TYPE_F32;
    if (type == "bf16") return COLLET_TYPE_BF16;
    if (type == "f16") return COLLET_TYPE_F16;
    throw Error(COLLET_INVALID_ARGUMENT, std::string("a group is computed in the unknown type ") + type);
  }

  const DictionaryEntry* find(const std::string& name) const {
    for (const DictionaryEntry& entry : entries_) {
      if (entry.name == name) return &entry;
    }
    return nullptr;
  }

  std::vector<DictionaryEntry> entries_;
  std::vector<std::string> names_;
};

/** Fills `out` with the product in the region of a group, its only dot; false where matrix_product_of says so, and if
 * there is none. */
inline bool product_of_group(const Op& op, MatrixProduct* out) {
  if (op.region_count() == 0) return false;
  const RegionGraph graph(op.program(), op.raw().regions.first);
  for (uint32_t i = 0; i < graph.op_count(); ++i) {
    if (graph.op(i)->opcode != COLLET_OP_DOT) continue;
    const std::vector<Array> arrays = graph.arrays(graph.op(i));
    return matrix_product_of(Op(op.program(), graph.op(i), arrays.data()), out);
  }
  return false;
}

}  // namespace kernel
}  // namespace collet

#endif
