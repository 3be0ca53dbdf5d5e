// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/regular_ops.h"

#include <array>
#include <unordered_map>
#include <utility>

namespace collet::hlo {
namespace {

// If two names mean one op, export writes the first one.
constexpr std::pair<std::string_view, Op> kRows[] = {
    {"stablehlo.abs", Op::ABS},
    {"stablehlo.add", Op::ADD},
    {"stablehlo.after_all", Op::AFTER_ALL},
    {"stablehlo.and", Op::AND},
    {"stablehlo.atan2", Op::ATAN2},
    {"stablehlo.bitcast_convert", Op::BITCAST_CONVERT},
    {"stablehlo.cbrt", Op::CBRT},
    {"stablehlo.ceil", Op::CEIL},
    {"stablehlo.clamp", Op::CLAMP},
    {"stablehlo.complex", Op::COMPLEX},
    {"stablehlo.convert", Op::CONVERT},
    {"stablehlo.cosine", Op::COSINE},
    {"stablehlo.count_leading_zeros", Op::COUNT_LEADING_ZEROS},
    {"stablehlo.create_token", Op::AFTER_ALL},
    {"stablehlo.divide", Op::DIVIDE},
    {"stablehlo.exponential", Op::EXPONENTIAL},
    {"stablehlo.exponential_minus_one", Op::EXPONENTIAL_MINUS_ONE},
    {"stablehlo.floor", Op::FLOOR},
    {"stablehlo.imag", Op::IMAG},
    {"stablehlo.is_finite", Op::IS_FINITE},
    {"stablehlo.log", Op::LOG},
    {"stablehlo.log_plus_one", Op::LOG_PLUS_ONE},
    {"stablehlo.logistic", Op::LOGISTIC},
    {"stablehlo.maximum", Op::MAXIMUM},
    {"stablehlo.minimum", Op::MINIMUM},
    {"stablehlo.multiply", Op::MULTIPLY},
    {"stablehlo.negate", Op::NEGATE},
    {"stablehlo.not", Op::NOT},
    {"stablehlo.or", Op::OR},
    {"stablehlo.partition_id", Op::PARTITION_ID},
    {"stablehlo.popcnt", Op::POPCNT},
    {"stablehlo.power", Op::POWER},
    {"stablehlo.real", Op::REAL},
    {"stablehlo.remainder", Op::REMAINDER},
    {"stablehlo.replica_id", Op::REPLICA_ID},
    {"stablehlo.reshape", Op::RESHAPE},
    {"stablehlo.round_nearest_afz", Op::ROUND_NEAREST_AFZ},
    {"stablehlo.round_nearest_even", Op::ROUND_NEAREST_EVEN},
    {"stablehlo.rsqrt", Op::RSQRT},
    {"stablehlo.select", Op::SELECT},
    {"stablehlo.shift_left", Op::SHIFT_LEFT},
    {"stablehlo.shift_right_arithmetic", Op::SHIFT_RIGHT_ARITHMETIC},
    {"stablehlo.shift_right_logical", Op::SHIFT_RIGHT_LOGICAL},
    {"stablehlo.sign", Op::SIGN},
    {"stablehlo.sine", Op::SINE},
    {"stablehlo.sqrt", Op::SQRT},
    {"stablehlo.subtract", Op::SUBTRACT},
    {"stablehlo.tan", Op::TAN},
    {"stablehlo.tanh", Op::TANH},
    {"stablehlo.tuple", Op::TUPLE},
    {"stablehlo.xor", Op::XOR},
};

}  // namespace

Op regular_op(std::string_view name) {
  static const auto* const map = new std::unordered_map<std::string_view, Op>(std::begin(kRows), std::end(kRows));
  const auto it = map->find(name);
  return it == map->end() ? Op::INVALID : it->second;
}

std::string_view regular_name(Op op) {
  static const auto* const names = [] {
    auto* out = new std::array<std::string_view, kLastOp + 1>;
    for (const auto& [name, code] : kRows)
      if (std::string_view& slot = (*out)[static_cast<size_t>(code)]; slot.empty()) slot = name;
    return out;
  }();
  return static_cast<int>(op) <= kLastOp ? (*names)[static_cast<size_t>(op)] : std::string_view();
}

}  // namespace collet::hlo
