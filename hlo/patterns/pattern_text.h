// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/shape.h"
#include "hlo/ir/types.h"
#include "hlo/patterns/expression.h"

/// \file
/// HLO text with variables: element types, sizes, lists of sizes and constants. docs/patterns.md describes the language.

namespace collet::hlo::patterns {

/// What a variable stands for; its place in the text decides.
enum class VariableKind : uint8_t {
  Type,      ///< `$T[8]`: an element type, one of the listed ones
  Size,      ///< `f32[$N]`: the size of a dimension
  Sizes,     ///< `f32[$B...]`: the sizes of any number of dimensions
  Constant,  ///< `constant($c)`: the value of all elements of a constant
  Choice     ///< elsewhere, in attributes: a whole number, one of the listed ones
};

struct Variable {
  std::string name;
  VariableKind kind = VariableKind::Choice;
  uint32_t line = 0;                 ///< of its first use
  std::vector<std::string> choices;  ///< what `in` lists; empty: no list
};

/// A value of a variable; monostate: none yet.
using Binding = std::variant<std::monostate, Type, int64_t, std::vector<int64_t>, double>;
/// Values by the number of the variable.
using Bindings = std::vector<Binding>;

/// A condition of `where`.
struct Condition {
  Expression left, right;
  std::string op;    ///< "<", "<=", ">", ">=", "==", "!="
  std::string text;  ///< as it stands there
  uint32_t line = 0;
};

/// One dimension of a shape.
struct Extent {
  enum class Kind : uint8_t { Number, Size, Sizes, Computed };
  Kind kind = Kind::Number;
  int64_t number = 0;   ///< Number
  size_t variable = 0;  ///< Size and Sizes
};

/// The dimensions of a parameter or a result.
using Extents = std::vector<Extent>;

/// The text of one form of a pattern: a module with variables.
class PatternText {
 public:
  /// Reads a module that begins in line `line` of its file. Errors name the line.
  static Expected<PatternText> read(std::string_view text, uint32_t line);

  /// Returns the name after HloModule.
  const std::string& name() const { return name_; }
  uint32_t line() const { return line_; }
  const std::vector<Variable>& variables() const { return variables_; }
  const std::vector<Condition>& conditions() const { return conditions_; }
  /// Dimensions of the entry's parameters, by number.
  const std::vector<Extents>& parameters() const { return parameters_; }
  /// Dimensions of the first result.
  const Extents& result() const { return result_; }

  /// Returns the text with values in place of the variables; all must have one. Lines have the numbers that they have in the
  /// file.
  Expected<std::string> with(const Bindings& bindings) const;
  /// Returns the first condition that does not hold, "" if there is none. Those with variables that have no value yet are
  /// left out.
  std::string_view violated(const Bindings& bindings) const;
  /// Binds the sizes in `extents` to those of a shape; false if they contradict the shape or earlier values. A list without
  /// an element has no value yet.
  static bool bind(const Extents& extents, const Shape& shape, Bindings& bindings);
  /// Returns the dictionary of constants and choices, as StableHLO writes it: `{epsilon = 1e-05 : f64}`; "" without any.
  std::string attributes(const Bindings& bindings) const;

 private:
  friend class PatternTextReader;
  /// A part of the text.
  struct Piece {
    enum class Kind : uint8_t { Text, Variable, Sizes, Positions, Expression };
    Kind kind = Kind::Text;
    std::string text;     ///< Text
    size_t variable = 0;  ///< Variable, Sizes, Positions
    Expression expression = {};
    uint32_t line = 0;
  };
  std::optional<double> number_of(const Bindings& bindings, std::string_view name, bool rank) const;

  std::string name_;
  uint32_t line_ = 1;
  std::vector<Variable> variables_;
  std::vector<Condition> conditions_;
  std::vector<Extents> parameters_;
  Extents result_;
  std::vector<Piece> pieces_;
};

/// Divides a text of several modules; each begins with a line `HloModule`. Returns their texts and first lines.
Expected<std::vector<std::pair<std::string_view, uint32_t>>> split_modules(std::string_view text);

}  // namespace collet::hlo::patterns
