// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/option_types.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace collet::tool {
namespace {

// Parses a finite number of at least `least`.
std::optional<double> parse_real(std::string_view text, double least) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || !std::isfinite(number) || number < least) return std::nullopt;
  return number;
}

}  // namespace

std::optional<uint64_t> parse_whole_number(std::string_view text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

CLI::Option* add_number_option(CLI::App& verb, const std::string& names, std::function<void(uint64_t)> set,
                               const std::string& about, uint64_t least, uint64_t most) {
  const auto check = [least, most](const std::string& text) {
    const std::optional<uint64_t> number = parse_whole_number(text);
    if (number && *number >= least && *number <= most) return std::string();
    return fmt::format("'{}' is no whole number from {} to {}", text, least, most);
  };
  const auto keep = [set = std::move(set)](const std::string& text) { set(parse_whole_number(text).value_or(0)); };
  return verb.add_option_function<std::string>(names, keep, about)->check(CLI::Validator(check, ""))->type_name("N");
}

CLI::Option* add_seconds_option(CLI::App& verb, const std::string& names, double& seconds, const std::string& about,
                                double least) {
  const auto check = [least](const std::string& text) {
    if (parse_real(text, least)) return std::string();
    return fmt::format("'{}' is no number of seconds from {} on", text, least);
  };
  const auto keep = [&seconds, least](const std::string& text) {
    seconds = std::min(parse_real(text, least).value_or(kMostSeconds), kMostSeconds);
  };
  return verb.add_option_function<std::string>(names, keep, about)
      ->check(CLI::Validator(check, ""))
      ->type_name("SECONDS");
}

CLI::Option* add_real_option(CLI::App& verb, const std::string& names, double& value, const std::string& about,
                             double least, double most, const std::string& type) {
  const auto check = [least, most](const std::string& text) {
    const std::optional<double> number = parse_real(text, least);
    if (number && *number <= most) return std::string();
    return fmt::format("'{}' is no number from {} to {}", text, least, most);
  };
  const auto keep = [&value, least](const std::string& text) { value = parse_real(text, least).value_or(least); };
  return verb.add_option_function<std::string>(names, keep, about)->check(CLI::Validator(check, ""))->type_name(type);
}

void refuse_empty_values(CLI::App& verb) {
  for (CLI::Option* option : verb.get_options()) {
    const bool list = option->get_positional() && option->get_items_expected_max() > 1;
    if (option->get_items_expected_max() == 0 || list) continue;
    option->check(CLI::Validator(
        [](const std::string& text) { return text.empty() ? std::string("the value is empty") : std::string(); }, ""));
  }
}

}  // namespace collet::tool
