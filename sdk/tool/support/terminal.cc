// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace collet::tool {
namespace {

Style style_of(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  if (!isatty(fd) || dumb || (no_color != nullptr && *no_color != '\0')) return {};
  return {{"\033[1m"}, {"\033[2m"}, {"\033[31m"}, {"\033[32m"}, {"\033[33m"}, {"\033[0m"}};
}

size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Style stdout_style() {
  return style_of(STDOUT_FILENO);
}

Style stderr_style() {
  return style_of(STDERR_FILENO);
}

Progress::Progress(std::string_view what, size_t total)
    : what_(what),
      total_(std::max<size_t>(total, 1)),
      terminal_(isatty(STDERR_FILENO) != 0),
      next_(start_ + std::chrono::seconds(terminal_ ? 0 : 10)) {}

void Progress::update(size_t done, std::string_view note) {
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(terminal_ ? 100 : 10000);
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  std::string rest;
  if (elapsed > 2 && share > 0) rest = fmt::format(", {:.0f} s left", elapsed / share - elapsed);
  if (!note.empty()) rest += "  " + printable(note, Lines::One);
  if (!terminal_) {
    fmt::print(stderr, "{} {}/{}{}\n", what_, done, total_, rest);
    return;
  }
  constexpr size_t kBar = 24;
  const auto full = static_cast<size_t>(share * kBar);
  std::string line = fmt::format("{} [{:#<{}}{:.<{}}] {}/{}{}", what_, "", full, "", kBar - full, done, total_, rest);
  if (const size_t width = terminal_width(); line.size() >= width) line.resize(width - 1);
  fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::finish() {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

std::string human(double number, std::string_view unit) {
  constexpr std::array<const char*, 7> kPrefixes = {"", "k", "M", "G", "T", "P", "E"};
  size_t prefix = 0;
  while (std::fabs(number) >= 999.5 && prefix + 1 < kPrefixes.size()) {
    number /= 1000;
    ++prefix;
  }
  const bool whole = prefix == 0 && number == std::floor(number);
  std::string text = whole ? fmt::format("{:.0f}", number) : fmt::format("{:.3g}", number);
  if (prefix > 0 || !unit.empty()) text += fmt::format(" {}{}", kPrefixes[prefix], unit);
  return text;
}

std::string human_seconds(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

}  // namespace collet::tool
