// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/base/status.h"

/// \file
/// Arithmetic in the text of a pattern: `$N % 16`, `2 * $N + 1`, `#B + 1`.

namespace collet::hlo::patterns {

/// A sum of products over numbers, variables and ranks of lists. Division and remainder of whole numbers round towards
/// zero.
class Expression {
 public:
  /// Reads the whole of `text`. Variables are `$NAME` or, with `bare`, also NAME; `#NAME` is the length of a list.
  static Expected<Expression> read(std::string_view text, bool bare);

  /// Returns the names that occur; those of lists, too.
  std::vector<std::string> names() const;
  /// Returns the value; nullopt if a variable has no value or a division is by zero. `value` gets a name, and whether its
  /// rank is wanted.
  std::optional<double> value(
      const std::function<std::optional<double>(std::string_view name, bool rank)>& value) const;
  /// Returns the numbers that stand in it, from left to right.
  std::vector<double> numbers() const;

 private:
  friend class ExpressionReader;
  /// The program of a stack machine: operands before operators.
  struct Step {
    char kind = '0';  ///< '0' a number, '$' a variable, '#' a rank, or an operator; '~' negates
    double number = 0;
    std::string name = {};
  };
  std::vector<Step> steps_;
};

}  // namespace collet::hlo::patterns
