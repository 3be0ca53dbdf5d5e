// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// The mutants that are made mechanically: mutations of mutations.def times ops. The plugin "mutation" is any of them; its option
/// `mutant` has the name.

namespace collet::mutants {

/// The result mutations, by number.
enum class ResultMutation : uint8_t {
#define COLLET_RESULT_MUTATION(name, group, types, needs) name,
#include "conformance/mutants/mutations.def"
  last_bit_other,
  nan_bits_other,
  declared_flush,
  COUNT
};

enum class Types : uint8_t { ANY, FLOATS, INTEGERS, PREDS };
enum class How : uint8_t { TURNED, ONES, ZEROS, MORE, ZERO, ONE, OTHER };
enum class FieldKind : uint8_t { Range, Number, Flag };

struct Mutant {
  enum class Kind : uint8_t {
    Result,
    Attribute,
    Operand,
    Choice,     ///< none of these: the evaluator's other choices, where the meaning of an op leaves one
    Contracted  ///< a * b + c is rounded once
  };
  std::string name;        ///< "nan_becomes_zero:add"
  std::string_view group;  ///< of the kill table
  Kind kind = Kind::Result;
  uint32_t op = 0;  ///< COLLET_OP_*
  ResultMutation result = ResultMutation::COUNT;
  Types types = Types::ANY;
  FieldKind field = FieldKind::Flag;
  uint32_t offset = 0;  ///< of the field in the record
  How how = How::OTHER;
  bool legal = false;          ///< a right backend, of another kind
  bool other_choices = false;  ///< of the interpreter behind
};

/// All of them.
const std::vector<Mutant>& all_mutants();
/// Null where there is none.
const Mutant* find_mutant(std::string_view name);

}  // namespace collet::mutants
