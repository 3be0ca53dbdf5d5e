// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

/// \file
/// Elements as text: constants and lookup tables of kernels.

namespace collet::codegen {

/// One element of `type`, whose bytes in memory are the lowest of `bits`. Numbers are decimal, the shortest that is read
/// back as the same bits; infinities, what is not a number and preds other than 0 and 1 are hexadecimal bits; complex
/// numbers are (re, im).
std::string print_element(uint32_t type, const std::array<uint64_t, 2>& bits);

/// Reads one number of `type`, or one half of a complex one: what print_element writes, without parentheses. False where
/// `text` is none or does not fit.
bool parse_number(uint32_t type, std::string_view text, uint64_t& bits);

}  // namespace collet::codegen
