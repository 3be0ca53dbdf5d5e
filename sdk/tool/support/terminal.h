// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "hlo/base/utf8.h"

namespace collet::tool {

/// An escape sequence of the tool's own.
struct Sequence {
  const char* text = "";
};

/// Escape sequences for the terminal; empty strings if there is no terminal, TERM is dumb, or NO_COLOR is set.
struct Style {
  Sequence bold, dim, red, green, yellow, reset;
};

/// Returns what is shown of an argument: texts are made printable, see hlo/base/utf8.h.
template <typename T>
decltype(auto) shown(const T& argument) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>)
    return printable(argument);
  else if constexpr (std::is_same_v<T, Sequence>)
    return argument.text;
  else
    return (argument);
}
template <typename T>
using Shown = std::remove_cvref_t<decltype(shown(std::declval<const T&>()))>;

/// Writes a formatted text to a stream. All output of the tool that is not data for other programs goes through here: of the texts
/// among the arguments nothing can control the terminal.
template <typename... T>
void show(std::FILE* file, fmt::format_string<Shown<T>...> format, const T&... arguments) {
  const fmt::string_view written = format;
  const std::string text = [written](const Shown<T>&... made) {
    return fmt::vformat(written, fmt::make_format_args(made...));
  }(shown(arguments)...);
  fmt::print(file, "{}", text);
}
template <typename... T>
void show(fmt::format_string<Shown<T>...> format, const T&... arguments) {
  show(stdout, format, arguments...);
}

Style stdout_style();
Style stderr_style();

/// A progress bar on stderr, drawn at most ten times a second. If stderr is not a terminal, a line is printed every ten
/// seconds.
class Progress {
 public:
  Progress(std::string_view what, size_t total);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Shows that `done` of the total are done, with a note on the present state.
  void update(size_t done, std::string_view note = {});
  /// Removes the bar.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  size_t total_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_;
};

/// Formats a number such as 1234567 as "1.23 M"; for counts, bytes (with unit "B") and rates.
std::string human(double number, std::string_view unit = {});
/// Formats a time such as 0.00123 as "1.23 ms".
std::string human_seconds(double seconds);

}  // namespace collet::tool
