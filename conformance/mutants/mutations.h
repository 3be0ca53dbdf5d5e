// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// The mutants that are generated: each mutation of mutations.def with each op to which it applies. The plugin
/// "mutation" implements all of them; its option `mutant` selects one by name.

namespace collet::mutants {

/// The result mutations of mutations.def.
enum class ResultMutation : uint8_t {
#define COLLET_RESULT_MUTATION(name, group, types, needs) name,
#include "conformance/mutants/mutations.def"
  last_bit_other,
  nan_bits_other,
  declared_flush,
  COUNT
};

/// Kernels that are wrong for some operands.
enum class KernelMutation : uint8_t {
  by_zero_is_zero,
  least_by_minus_one_is_zero,
  remainder_has_sign_of_divisor,
  shift_count_wraps,
  saturates,
  zero_has_one_zero_less,
  counts_in_32_bits,
  unsigned_is_signed,
  negative_power_is_zero,
  integers_by_single,
  nan_loses,
  first_of_equal_zeros,
  halves_the_other_way,
  double_by_single,
  zero_to_zero_is_nan,
  one_by_nan_is_nan,
  unordered_is_true,
  zeros_differ,
  denormals_are_equal,
  infinite_is_finite,
  by_simple_formula,
  few_bits,
  saturates_early,
  large_operands_are_nan,
  nan_to_least,
  outside_wraps,
  outside_is_least,
  rounds_to_integer,
  truncates,
  halves_away,
  nan_by_cutting,
  short_denormals_lost,
  true_is_not_one,
  by_double,
  rounded_by_single,    ///< rounded to f32 first
  rounded_by_half,      ///< rounded to f16 first
  rounded_by_bfloat,    ///< rounded to bf16 first
  rounded_by_extended,  ///< rounded to 64 bits of mantissa first, as x87 does
  lower_bound_last,
  by_library,         ///< right: an elementary function of the C library, or of another one (math_library.h)
  signalling_is_nan,  ///< right: a function of a signalling NaN is NaN
  COUNT
};
/// Misinterpretations of indices.
enum class IndexMutation : uint8_t {
  negative_counts_from_end,
  beyond_is_zero,
  beyond_wraps,
  outside_is_clamped,
  indices_are_signed,
  indices_have_32_bits,
  indices_have_16_bits,
  COUNT
};

enum class Types : uint8_t { ANY, FLOATS, INTEGERS, PREDS, COMPLEX, SHORT_INTEGERS, SHORT_FLOATS };
enum class How : uint8_t { TURNED, ONES, ZEROS, MORE, ZERO, ONE, OTHER };
enum class FieldKind : uint8_t { Range, Number, Flag };

struct Mutant {
  enum class Kind : uint8_t {
    Result,
    Attribute,
    Operand,
    Kernel,
    Index,
    Choice,     ///< no mutation, but the evaluator's other choices, where the meaning of an op leaves one
    Contracted  ///< a * b + c is rounded once only
  };
  std::string name;        ///< "nan_becomes_zero:add"
  std::string_view group;  ///< row of the report
  Kind kind = Kind::Result;
  uint32_t op = 0;  ///< COLLET_OP_*
  ResultMutation result = ResultMutation::COUNT;
  KernelMutation kernel = KernelMutation::COUNT;
  IndexMutation index = IndexMutation::COUNT;
  Types types = Types::ANY;
  FieldKind field = FieldKind::Flag;
  uint32_t offset = 0;  ///< offset of the field in the record
  How how = How::OTHER;
  bool legal = false;          ///< a correct backend with other permitted results
  bool other_choices = false;  ///< option of the interpreter
};

/// Returns all mutants.
const std::vector<Mutant>& all_mutants();
/// Returns the mutant of that name; null if there is none.
const Mutant* find_mutant(std::string_view name);

}  // namespace collet::mutants
