// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "hlo/stablehlo/enums.h"
#include "hlo/stablehlo/mlir.h"

/// \file
/// Rules for writing the attributes that are specific to an op: how StableHLO text and VHLO artifacts encode them, and
/// their default values.

namespace collet::hlo::mlir {

/// How an attribute of the normal form (see mlir.h) is encoded.
enum class AttrForm : uint8_t {
  I64,
  I32,
  Bool,
  Flag,        ///< a unit attribute in text, a boolean in artifacts
  Ints,        ///< array<i64: ...>
  Table,       ///< dense<[[...]]> of rank 2
  Bools,       ///< array<i1: ...>
  Enum,        ///< one of `enumeration`
  Precisions,  ///< a list of precisions
  ApiVersion,  ///< a number in text, an enumeration value in artifacts
  Text,
  Symbol,
  Symbols,
  Type,    ///< a type, or `none`
  Number,  ///< a number, or `none`
  Truth,   ///< a boolean, or `none`
  Accuracy,
  Any  ///< in the standard encoding of the attribute's kind
};

/// The default value of an attribute that a program omits.
enum class AttrDefault : uint8_t {
  Required,
  Zero,  ///< 0, false, "", an empty list, the enumeration's default, `none`
  Ones,  ///< a list of ones, as long as the window's rank
  Zeros,
  MinusOne,
  Dictionary,
  One
};

struct AttrRule {
  std::string_view name;
  AttrForm form = AttrForm::Any;
  AttrDefault otherwise = AttrDefault::Required;
  VhloEnum enumeration = VhloEnum::Precision;
  std::string_view enum_text = {};  ///< "comparison_direction" of #stablehlo<comparison_direction LT>
};

/// Returns the rule for an attribute name; null if there is none.
const AttrRule* find_attr_rule(std::string_view name);

/// A structured attribute of StableHLO text whose fields are separate attributes in the normal form.
struct AttrRecord {
  std::string_view op;
  std::string_view name;    ///< name of the op's attribute: "dot_dimension_numbers"
  std::string_view type;    ///< "#stablehlo.dot"
  std::string_view fields;  ///< names of the normal form, separated by commas
};
/// Returns the record that holds `field` of that op; null if the op has the attribute itself.
const AttrRecord* find_attr_record(std::string_view op, std::string_view field);

/// Returns the default value of an attribute of that op; null if there is none.
AttrRef default_attr(Program& program, const Op& op, const AttrRule& rule);
/// True if the value equals the default value.
bool is_default_attr(const AttrRule& rule, AttrRef value);

}  // namespace collet::hlo::mlir
