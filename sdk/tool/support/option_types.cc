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

std::optional<double> parse_seconds(std::string_view text, double least) {
  double seconds = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seconds);
  if (error != std::errc() || stop != end || !std::isfinite(seconds) || seconds < least) return std::nullopt;
  return std::min(seconds, kMostSeconds);
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
    if (parse_seconds(text, least)) return std::string();
    return fmt::format("'{}' is no number of seconds from {} on", text, least);
  };
  const auto keep = [&seconds, least](const std::string& text) {
    seconds = parse_seconds(text, least).value_or(kMostSeconds);
  };
  return verb.add_option_function<std::string>(names, keep, about)
      ->check(CLI::Validator(check, ""))
      ->type_name("SECONDS");
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
