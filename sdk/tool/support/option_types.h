// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace CLI {
class App;
class Option;
}  // namespace CLI

/// \file
/// Options whose values are checked when they are parsed: an invalid value is wrong usage.

namespace collet::tool {

/// Longest time limit in seconds, about three years. Longer ones are reduced to it, so that clocks do not overflow.
constexpr double kMostSeconds = 1e8;

/// Parses a whole number in decimal digits. Returns nullopt if there is anything else in the text.
std::optional<uint64_t> parse_whole_number(std::string_view text);

/// Declares an option that takes a whole number from `least` to `most`.
CLI::Option* add_number_option(CLI::App& verb, const std::string& names, std::function<void(uint64_t)> set,
                               const std::string& about, uint64_t least, uint64_t most);

/// Declares an option that takes a whole number from `least` to `most` and stores it in `value`.
template <typename T>
CLI::Option* add_number_option(CLI::App& verb, const std::string& names, T& value, const std::string& about,
                               T least = 0, T most = std::numeric_limits<T>::max()) {
  return add_number_option(
      verb, names, [&value](uint64_t number) { value = static_cast<T>(number); }, about, least, most);
}

/// Declares an option that takes a number of seconds, finite and not below `least`.
CLI::Option* add_seconds_option(CLI::App& verb, const std::string& names, double& seconds, const std::string& about,
                                double least = 0);

/// Declares an option that takes a finite number from `least` to `most`, which is above `least`, in decimal digits. `TYPE` names its
/// unit in the help.
CLI::Option* add_real_option(CLI::App& verb, const std::string& names, double& value, const std::string& about,
                             double least, double most, const std::string& type);

/// Makes an empty value of any option or argument of the verb wrong usage. Lists of arguments, such as the words of
/// another command, may have empty ones.
void refuse_empty_values(CLI::App& verb);

}  // namespace collet::tool
