// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

/// \file
/// Text form of elements, which constants and lookup tables of kernels are made of.

namespace collet::codegen {

/// Returns one element of `type` as text. The lowest bytes of `bits` are the element's bytes in memory. Numbers are
/// printed in decimal, with the fewest digits that give the same bits when read; infinities, NaNs, and preds other than
/// 0 and 1 as hexadecimal bits; complex numbers as (re, im).
std::string print_element(uint32_t type, const std::array<uint64_t, 2>& bits);

/// Reads one number of `type`, or the real or imaginary part of a complex one, as print_element writes it, without
/// parentheses. Returns false if `text` is no number or does not fit the type.
bool parse_number(uint32_t type, std::string_view text, uint64_t& bits);

}  // namespace collet::codegen
