// SPDX-License-Identifier: Apache-2.0
#include "terminal.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace mnist {

namespace {

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Returns the mean of the values that fall into each column.
std::vector<double> columns_of(const std::vector<double>& values, size_t width) {
  std::vector<double> columns(std::min(width, values.size()));
  for (size_t c = 0; c < columns.size(); ++c) {
    const size_t begin = c * values.size() / columns.size(), end = (c + 1) * values.size() / columns.size();
    for (size_t i = begin; i < end; ++i) columns[c] += values[i] / static_cast<double>(end - begin);
  }
  return columns;
}

}  // namespace

Progress::Progress(std::string title, size_t total, bool quiet)
    : title_(std::move(title)), total_(total), quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (shown_ != 0 && terminal_) std::fputc('\n', stderr);
}

void Progress::show(size_t done, const std::string& note) {
  if (quiet_ || (done < total_ && seconds() < next_)) return;
  next_ = seconds() + (terminal_ ? 0.05 : 2);
  shown_ = done;
  const size_t width = 32, full = total_ == 0 ? width : width * done / total_;
  if (terminal_) {
    std::fprintf(stderr, "\r%s [%s%s] %zu/%zu  %s\033[K", title_.c_str(), std::string(full, '#').c_str(),
                 std::string(width - full, '.').c_str(), done, total_, note.c_str());
  } else {
    std::fprintf(stderr, "%s %zu/%zu  %s\n", title_.c_str(), done, total_, note.c_str());
  }
  std::fflush(stderr);
}

std::string draw_curve(const std::vector<double>& values, size_t width, size_t height, bool utf8) {
  static const char* const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static const char* const marks[] = {" ", ".", ":", "|"};
  const size_t levels = utf8 ? 8 : 3;
  const std::vector<double> columns = columns_of(values, width);
  if (columns.empty()) return "";
  const double top = *std::max_element(columns.begin(), columns.end());
  if (!(top > 0) || !std::isfinite(top)) return "";
  std::string out;
  for (size_t row = height; row-- > 0;) {
    char label[16] = "";
    if (row + 1 == height) std::snprintf(label, sizeof label, "%.2f", top);
    if (row == 0) std::snprintf(label, sizeof label, "0");
    char line[32];
    std::snprintf(line, sizeof line, "%8s ", label);
    out += line;
    out += utf8 ? "│" : "|";
    for (double value : columns) {
      const double filled = value / top * static_cast<double>(height * levels) - static_cast<double>(row * levels);
      const auto level = static_cast<size_t>(std::clamp(std::lround(filled), 0L, static_cast<long>(levels)));
      out += utf8 ? blocks[level] : marks[level];
    }
    out += "\n";
  }
  return out;
}

bool speaks_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (!value || !*value) continue;
    std::string text(value);
    std::transform(text.begin(), text.end(), text.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 32 : c; });
    return text.find("UTF-8") != std::string::npos || text.find("UTF8") != std::string::npos;
  }
  return false;
}

}  // namespace mnist
