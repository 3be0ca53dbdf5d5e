// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "hlo/stablehlo/enums.h"
#include "hlo/stablehlo/mlir.h"

/// \file
/// Rules for writing an op's own attributes, besides their values: how StableHLO text and VHLO spell them, and
/// what they are where they are missing.

namespace collet::hlo::mlir {

/// How an attribute of the normal form is written.
enum class AttrForm : uint8_t {
  I64,
  I32,
  Bool,
  Flag,        ///< a unit attribute in text, a boolean in artifacts
  Ints,        ///< array<i64: ...>
  Table,       ///< dense<[[...]]> of rank 2
  Bools,       ///< array<i1: ...>
  Enum,        ///< one of `enumeration`
  Precisions,  ///< a list of them
  ApiVersion,  ///< a number in text
  Text,
  Symbol,
  Symbols,
  Type,    ///< a type, or `none`
  Number,  ///< a number, or `none`
  Truth,   ///< a boolean, or `none`
  Accuracy,
  Any  ///< by its own kind
};

/// The value of an attribute that is missing.
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

/// Null when nothing is known of an attribute of that name.
const AttrRule* find_attr_rule(std::string_view name);

/// A record of StableHLO text that the normal form spreads out.
struct AttrRecord {
  std::string_view op;
  std::string_view name;    ///< of the op's attribute: "dot_dimension_numbers"
  std::string_view type;    ///< "#stablehlo.dot"
  std::string_view fields;  ///< names of the normal form, separated by commas
};
/// The record that holds `field` of that op; null when the op has the attribute itself.
const AttrRecord* find_attr_record(std::string_view op, std::string_view field);

/// The attribute that stands for a missing one of that op; null when there is none.
AttrRef default_attr(Program& program, const Op& op, const AttrRule& rule);
/// True when the value says no more than a missing attribute does.
bool is_default_attr(const AttrRule& rule, AttrRef value);

}  // namespace collet::hlo::mlir
