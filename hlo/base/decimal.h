// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace collet {

/// Returns the double that is nearest to a decimal number; infinity or zero where it is too large or too small. Nullopt for any other text.
/// Unlike strtod it does not depend on the process's locale.
std::optional<double> decimal_value(std::string_view text);

/// Returns a number with so many significant digits, as %.*g writes it in the locale "C".
std::string decimal_text(double value, int digits);

}  // namespace collet
