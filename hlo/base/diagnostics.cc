// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/diagnostics.h"

#include <algorithm>

namespace collet {
namespace {

constexpr size_t kLongestShownLine = 160;

void append_caret(std::string& out, const Diagnostic& d) {
  size_t column = d.column ? d.column - 1 : 0;
  std::string_view source = d.source;
  if (source.size() > kLongestShownLine) {
    size_t begin = column > kLongestShownLine / 2 ? column - kLongestShownLine / 2 : 0;
    begin = std::min(begin, source.size());
    source = source.substr(begin, kLongestShownLine);
    column -= begin;
  }
  out += "\n  ";
  out += source;
  out += "\n  ";
  for (size_t i = 0; i < column; ++i) out += i < source.size() && source[i] == '\t' ? '\t' : ' ';
  out += '^';
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

void Diagnostics::add(Diagnostic diagnostic) {
  if (!full()) list_.push_back(std::move(diagnostic));
}

std::string Diagnostics::to_string() const {
  std::string out;
  for (const Diagnostic& d : list_) {
    if (!out.empty()) out += '\n';
    out += file_.empty() ? "<input>" : file_;
    if (d.line) out += ":" + std::to_string(d.line) + ":" + std::to_string(d.column);
    out += ": error: " + d.message;
    if (d.line) append_caret(out, d);
  }
  return out;
}

Status Diagnostics::to_status() const {
  return list_.empty() ? Status() : invalid_argument(to_string());
}

std::string_view nearest_spelling(std::string_view name, const std::vector<std::string_view>& candidates) {
  if (name.size() > 100) return {};
  std::string_view best;
  size_t best_distance = std::max<size_t>(1, name.size() / 3) + 1;
  for (std::string_view candidate : candidates) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace collet
