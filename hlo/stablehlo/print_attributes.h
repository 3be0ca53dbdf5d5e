// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "hlo/stablehlo/mlir.h"

namespace collet::hlo::mlir {

/// In quotes, with MLIR's escapes.
std::string quoted(std::string_view text);
/// A name as a symbol or a key: bare where MLIR reads it so, else in quotes.
std::string symbol_text(std::string_view name);
std::string key_text(std::string_view name);
/// A float as MLIR reads it back to the same value: decimal, or its bits for infinities and NaN.
std::string float_text(double value, hlo::Type type);
/// The elements of a Dense attribute, with `dense<` and `>` and without the type.
std::string dense_text(const Attr& dense);
/// "[1, 2]"
std::string ints_text(List<const int64_t> values);

}  // namespace collet::hlo::mlir
