// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "hlo/base/hash.h"
#include "hlo/base/status.h"
#include "hlo/ir/literal.h"
#include "hlo/ir/shape.h"

/// \file
/// Inputs by rule. Each element is computed from the number of its parameter and its index, so inputs need not be stored, and
/// every program that follows the rule computes the same bits.

namespace collet::hlo::testing {

/// Returns a number in [-1, 1) made from the upper bits of `x`. Each element of an input is made from
/// x = mix((parameter << 40) ^ index).
double unit(uint64_t x);

/// The rule by which the elements of one parameter are computed from x.
struct InputRule {
  enum class Kind : uint8_t {
    ByType,   ///< floats unit(x), signed integers -4 ... 4, unsigned ones 0 ... 8, pred the upper bit
    Unit,     ///< offset + scale * unit(x); the imaginary part scale * unit(mix(x))
    Integer,  ///< (x >> 33) mod modulo + low
    Bit       ///< x >> 63
  };
  Kind kind = Kind::ByType;
  double scale = 1, offset = 0;
  int64_t modulo = 1, low = 0;
};

/// Returns the array, rounded from double to the element type; for types narrower than f32 through f32. Tuples are
/// filled leaf by leaf; each leaf counts as a parameter of its own, from `parameter` on.
Literal input_by_rule(const InputRule& rule, const Shape& shape, uint64_t parameter);
/// Returns one literal for each shape, by the rule ByType. They count as parameters from `first` on.
std::vector<Literal> inputs_by_type(const std::vector<Shape>& shapes, uint64_t first = 0);

/// Returns ByType, or for integers of 8 bits a rule with all of their numbers: quantized programs store their values in them.
InputRule rule_of_stored(const Shape& shape);

/// Converts the values to another float type; exact if it is wider.
Literal converted(const Literal& value, const Shape& shape);

/// Parses a shape such as "f32[2,3]", without layout or tuples.
Expected<Shape> plain_shape(std::string_view text);

}  // namespace collet::hlo::testing
