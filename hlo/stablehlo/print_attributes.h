// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "hlo/stablehlo/mlir.h"

namespace collet::hlo::mlir {

/// Returns the text in quotes, with MLIR's escapes.
std::string string_literal(std::string_view text);
/// Returns a name as a symbol or key: unquoted if MLIR can read it so, else in quotes.
std::string symbol_text(std::string_view name);
std::string key_text(std::string_view name);
/// Returns a float as text that MLIR reads back as the same value: decimal, or its bits for infinities and NaN.
std::string float_text(double value, hlo::Type type);
/// Returns the elements of a Dense attribute, with `dense<` and `>` and without the type.
std::string dense_text(const Attr& dense);
/// Returns a list such as "[1, 2]".
std::string ints_text(List<const int64_t> values);

}  // namespace collet::hlo::mlir
