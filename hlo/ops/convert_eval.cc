// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "hlo/base/float_format.h"
#include "hlo/ops/eval/body.h"
#include "hlo/ops/eval/families.h"
#include "hlo/ops/eval/strided.h"

namespace collet::hlo {
namespace eval {
namespace {

// Reduces mantissa and exponent on the bits of an IEEE format, as XLA defines it: values that are subnormal in the
// narrower exponent range become zero; subnormals of the source stay if the exponent is not narrowed.
uint64_t reduce_bits(const FloatFormat& f, uint64_t bits, int64_t exponent_bits, int64_t mantissa_bits) {
  const int width = f.exponent_bits + f.mantissa_bits;
  const uint64_t sign = bits & (uint64_t{1} << width);
  uint64_t magnitude = bits ^ sign;
  const uint64_t infinity = low_bits(~uint64_t{0}, f.exponent_bits) << f.mantissa_bits;
  if (magnitude > infinity) return mantissa_bits > 0 ? bits : sign | infinity;
  if (mantissa_bits < f.mantissa_bits) {
    const int64_t cut = f.mantissa_bits - mantissa_bits;
    const uint64_t last = (magnitude >> cut) & 1;
    magnitude += (uint64_t{1} << (cut - 1)) - 1 + last;
    magnitude &= ~((uint64_t{1} << cut) - 1);
  }
  if (exponent_bits < f.exponent_bits) {
    const int64_t bias = (int64_t{1} << (exponent_bits - 1)) - 1;
    const auto exponent = static_cast<int64_t>(magnitude >> f.mantissa_bits);
    if (exponent > f.bias + bias) return sign | infinity;
    if (exponent <= f.bias - bias) return sign;
  }
  return sign | magnitude;
}

}  // namespace

void reduce_precision_lanes(Type type, const ReducePrecisionAttrs& attrs, const void* in, void* out, int64_t n) {
  FloatFormat format = float_format(static_cast<uint32_t>(type));
  // Formats without infinity are converted by value, not by their bits.
  const bool by_value = format.specials != FloatSpecials::IEEE;
  if (by_value) format = float_format(COLLET_TYPE_F64);
  auto* from = static_cast<const double*>(in);
  auto* to = static_cast<double*>(out);
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t bits = format.mantissa_bits == 52 ? std::bit_cast<uint64_t>(from[i]) : encode_float(format, from[i]);
    to[i] = decode_float(format, reduce_bits(format, bits, attrs.exponent_bits, attrs.mantissa_bits));
  }
}

}  // namespace eval

namespace {

using namespace eval;

template <typename F>
Expected<Literal> by_chunks(const EvalInput& in, F&& chunk) {
  COLLET_TRY(check_size(in.instr.shape));
  Literal out = Literal::uninitialized(in.instr.shape);
  const Literal& operand = in.operand(0);
  const Codec& source = codec(operand.type());
  const Codec& target = codec(out.type());
  if (!source.load || !target.store)
    return unimplemented("conversion between " + operand.shape().to_string() + " and " + out.shape().to_string());
  uint8_t* to = out.mutable_bytes();
  const int64_t n = out.element_count();
  parallel(in.context, n, n, [&](int64_t begin, int64_t end) {
    LaneBuffer wide, converted;
    for (int64_t at = begin; at < end; at += kLanes) {
      const int64_t count = std::min(kLanes, end - at);
      source.load(operand.bytes() + at * source.bytes, 1, wide.data(), count);
      chunk(at, wide.data(), converted.data(), count);
      target.store(converted.data(), to + at * target.bytes, 1, count);
    }
  });
  return out;
}

/// True if the value is rounded up: `random` in [0, 2^bits) is less than `fraction` of that range. `fraction`, in [0,
/// 1), is the position of the value between its neighbours.
bool goes_up(double fraction, uint64_t random, int bits) {
  return static_cast<long double>(random) < std::floor(std::ldexp(static_cast<long double>(fraction), bits));
}

int64_t stochastic_int(double value, uint64_t random, int bits, Type to) {
  int64_t out;
  const double magnitude = std::fabs(value), whole = std::trunc(magnitude);
  const double rounded = whole + (std::isfinite(value) && goes_up(magnitude - whole, random, bits) ? 1 : 0);
  const double with_sign = std::copysign(rounded, value);
  const double in = std::isnan(value) ? value : with_sign;
  convert_lanes(Type::F64, to, &in, &out, 1);
  return out;
}

// Rounds toward zero, then up with the probability of the fraction that was cut off.
double stochastic_float(double value, uint64_t random, int bits, Type to) {
  const FloatFormat f = float_format(static_cast<uint32_t>(to));
  const double magnitude = std::fabs(value);
  if (!std::isfinite(value) || magnitude == 0 || f.specials == FloatSpecials::E8M0) return value;
  const int exponent = std::max(std::ilogb(magnitude), 1 - f.bias);
  const double step = std::ldexp(1.0, exponent - f.mantissa_bits);
  const double units = magnitude / step, whole = std::trunc(units);
  return std::copysign((whole + goes_up(units - whole, random, bits)) * step, value);
}

Expected<Literal> evaluate_stochastic(const EvalInput& in) {
  const Literal& random = in.operand(1);
  const int bits = type_info(random.type()).bits;
  const Type to = in.instr.shape.type();
  return by_chunks(in, [&](int64_t at, const void* from, void* out, int64_t n) {
    auto* values = static_cast<const double*>(from);
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t word = low_bits(static_cast<uint64_t>(random.as_int(at + i)), bits);
      if (wide_of(to) == Wide::Int)
        static_cast<int64_t*>(out)[i] = stochastic_int(values[i], word, bits, to);
      else
        static_cast<double*>(out)[i] = stochastic_float(values[i], word, bits, to);
    }
  });
}

// Treats the elements as sequences of bits, lowest first; pred has 8 bits.
Expected<Literal> evaluate_bitcast_convert(const EvalInput& in) {
  const Literal& operand = in.operand(0);
  const Shape& shape = in.instr.shape;
  const TypeInfo& from = type_info(operand.type());
  const TypeInfo& to = type_info(shape.type());
  if (from.bits == to.bits && from.bits >= 8 && to.kind != Kind::Pred) {
    if (operand.byte_size() != shape.byte_size()) return invalid_argument("bitcast-convert changes the size");
    return operand.reshaped(shape);
  }
  if (from.bits == 0 || to.bits == 0) return invalid_argument("bitcast-convert of values without bits");
  Literal out = Literal::zeros(shape);
  uint8_t* bytes = out.mutable_bytes();
  const int narrow = std::min(from.bits, to.bits);
  const int64_t pieces = operand.element_count() * (from.bits / narrow);
  if (pieces != out.element_count() * (to.bits / narrow)) return invalid_argument("bitcast-convert changes the size");
  for (int64_t p = 0; p < pieces; ++p) {
    // Copies the bits in groups of `narrow` bits, the width of the narrower type; group p has these positions in its
    // source and target element.
    const int64_t from_bit = p % (from.bits / narrow) * narrow, to_bit = p % (to.bits / narrow) * narrow;
    const uint8_t* source = operand.bytes() + p / (from.bits / narrow) * from.bytes();
    uint8_t* target = bytes + p / (to.bits / narrow) * to.bytes();
    if (narrow >= 8) {
      std::memcpy(target + to_bit / 8, source + from_bit / 8, static_cast<size_t>(narrow) / 8);
    } else {
      const uint64_t piece = low_bits(static_cast<uint64_t>(source[from_bit / 8]) >> (from_bit % 8), narrow);
      target[to_bit / 8] = static_cast<uint8_t>(target[to_bit / 8] | (piece << (to_bit % 8)));
    }
  }
  if (to.bits < 8 && to.kind == Kind::Signed)
    for (int64_t i = 0; i < out.element_count(); ++i) bytes[i] = static_cast<uint8_t>(sign_extend(bytes[i], to.bits));
  if (to.kind == Kind::Pred)
    for (int64_t i = 0; i < out.element_count(); ++i) bytes[i] = bytes[i] != 0;
  return out;
}

}  // namespace

Expected<Literal> evaluate_convert(const EvalInput& in) {
  const Instruction& instr = in.instr;
  switch (instr.op) {
    case Op::CONVERT:
      if (in.operand(0).type() == instr.shape.type()) return in.operand(0).reshaped(instr.shape);
      return by_chunks(in, [&](int64_t, const void* from, void* to, int64_t n) {
        convert_lanes(in.operand(0).type(), instr.shape.type(), from, to, n);
      });
    case Op::REDUCE_PRECISION: {
      const auto& attrs = instr.as<ReducePrecisionAttrs>();
      if (attrs.exponent_bits < 1 || attrs.mantissa_bits < 0)
        return invalid_argument("reduce-precision needs at least one exponent bit and no negative mantissa bits");
      return by_chunks(in, [&](int64_t, const void* from, void* to, int64_t n) {
        reduce_precision_lanes(instr.shape.type(), attrs, from, to, n);
      });
    }
    case Op::STOCHASTIC_CONVERT:
      return evaluate_stochastic(in);
    default:
      return evaluate_bitcast_convert(in);
  }
}

}  // namespace collet::hlo
