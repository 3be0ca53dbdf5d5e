// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/decimal.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace collet {
namespace {

// True if the number, whose text is one of from_chars, is at least 1.
bool is_large(std::string_view text) {
  const size_t mark = std::min(text.find_first_of("eE"), text.size());
  const std::string_view digits = text.substr(0, mark);
  const size_t first = digits.find_first_of("123456789");
  if (first == std::string_view::npos) return false;
  const size_t point = std::min(digits.find('.'), digits.size());
  const double place = first < point ? static_cast<double>(point - first - 1) : -static_cast<double>(first - point);
  std::string_view exponent = text.substr(std::min(mark + 1, text.size()));
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  double value = 0;
  (void)std::from_chars(exponent.data(), exponent.data() + exponent.size(), value);
  return place + value >= 0;
}

}  // namespace

std::optional<double> decimal_value(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc()) return value;
  if (error != std::errc::result_out_of_range) return std::nullopt;
  const double size = is_large(text) ? std::numeric_limits<double>::infinity() : 0;
  return text.starts_with('-') ? -size : size;
}

std::string decimal_text(double value, int digits) {
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, digits);
  return {buffer, error == std::errc() ? end : buffer};
}

}  // namespace collet
