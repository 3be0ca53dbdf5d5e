// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace collet::tool {

/// Escape sequences for the terminal; empty strings if there is no terminal, TERM is dumb, or NO_COLOR is set.
struct Style {
  const char* bold = "";
  const char* dim = "";
  const char* red = "";
  const char* green = "";
  const char* yellow = "";
  const char* reset = "";
};

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
