// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

namespace collet::hlo::mlir {

inline bool is_hex_number(std::string_view text) {
  return text.starts_with("0x") || text.starts_with("-0x");
}

/// Parses a decimal or hexadecimal number of 64 bits, signed or unsigned.
inline bool parse_int(std::string_view text, int64_t* out) {
  bool negative = false;
  if (text.starts_with('-')) {
    negative = true;
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.starts_with("0x")) {
    base = 16;
    text.remove_prefix(2);
  }
  uint64_t value = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (bad != std::errc() || end != text.data() + text.size()) return false;
  *out = static_cast<int64_t>(negative ? 0 - value : value);
  return true;
}

}  // namespace collet::hlo::mlir
