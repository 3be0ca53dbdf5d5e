// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/program.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

/// \file
/// Names in the text form of kernels, which the printer and the parser share.

namespace collet::codegen {

/// Names indexed by COLLET_COMBINE_*.
inline constexpr std::array<std::string_view, 10> kCombineNames = {"other", "add", "multiply", "minimum", "maximum",
                                                                   "and",   "or",  "xor",      "first",   "second"};
/// Names indexed by COLLET_DIRECTION_*.
inline constexpr std::array<std::string_view, 6> kDirectionNames = {"eq", "ne", "ge", "gt", "le", "lt"};
/// Names indexed by COLLET_COMPARE_*.
inline constexpr std::array<std::string_view, 5> kCompareNames = {"default", "float", "totalorder", "signed",
                                                                  "unsigned"};

/// Returns the index of `name` in a table, or the size of the table if it is not found.
template <size_t N>
size_t number_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

/// Deepest nesting of bodies that the text form may have.
inline constexpr int kDeepestBody = 32;

}  // namespace collet::codegen
