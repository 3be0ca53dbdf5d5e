// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/diagnostics.h"

#include <algorithm>
#include <iterator>

#include "hlo/base/utf8.h"

namespace collet {
namespace {

constexpr size_t kLongestShownLine = 160;

// Whether a byte would control a terminal or end a C string.
bool is_unprintable(char c) {
  return (static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t') || c == 0x7F;
}

void append_caret(std::string& out, const Diagnostic& d) {
  size_t column = d.column ? d.column - 1 : 0;
  std::string_view source = d.source;
  if (source.size() > kLongestShownLine) {
    size_t begin = column > kLongestShownLine / 2 ? column - kLongestShownLine / 2 : 0;
    begin = std::min(begin, source.size());
    while (begin > 0 && begin < source.size() && continues_character(source[begin])) --begin;
    source = source.substr(begin, kLongestShownLine);
    column -= begin;
  }
  out += "\n  ";
  std::replace_copy_if(source.begin(), source.end(), std::back_inserter(out), is_unprintable, '?');
  out += "\n  ";
  for (size_t i = 0; i < column; ++i) {
    const char c = i < source.size() ? source[i] : ' ';
    if (!continues_character(c)) out += c == '\t' ? '\t' : ' ';
  }
  out += '^';
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Returns the edit distance of two names, ignoring case. Distances of `limit` or more are all returned as `limit`, so
// only entries of the table within that distance of the diagonal are computed.
size_t edit_distance(std::string_view a, std::string_view b, size_t limit) {
  const size_t between = a.size() < b.size() ? b.size() - a.size() : a.size() - b.size();
  if (between >= limit) return limit;
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    const size_t first = i > limit ? i - limit : 1, last = std::min(b.size(), i + limit);
    size_t diagonal = row[first - 1], nearest = i;
    row[first - 1] = first == 1 ? i : limit;
    for (size_t j = first; j <= last; ++j) {
      const size_t replaced = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
      nearest = std::min(nearest, row[j]);
    }
    if (nearest >= limit) return limit;
  }
  return std::min(row[b.size()], limit);
}

}  // namespace

void Diagnostics::add(Diagnostic diagnostic) {
  std::replace_if(diagnostic.message.begin(), diagnostic.message.end(), is_unprintable, '?');
  if (!full()) list_.push_back(std::move(diagnostic));
}

void Diagnostics::show_source(std::string_view text) {
  for (Diagnostic& d : list_) {
    if (!d.line || !d.source.empty()) continue;
    size_t begin = 0;
    for (uint32_t line = 1; line < d.line && begin < text.size(); ++line) {
      const size_t end = text.find('\n', begin);
      begin = end == std::string_view::npos ? text.size() : end + 1;
    }
    d.source = text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin);
    if (!d.column) d.column = static_cast<uint32_t>(std::min(d.source.find_first_not_of(" \t"), d.source.size())) + 1;
  }
}

std::string Diagnostics::to_string() const {
  std::string out;
  for (const Diagnostic& d : list_) {
    if (!out.empty()) out += '\n';
    out += file_.empty() ? "<input>" : file_;
    if (d.line) out += ":" + std::to_string(d.line);
    if (d.line && d.column) out += ":" + std::to_string(d.column);
    out += ": error: " + d.message;
    if (d.line && !d.source.empty()) append_caret(out, d);
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
    const size_t distance = edit_distance(name, candidate, best_distance);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string stray_byte(char c) {
  if (c > ' ' && c < 0x7F) return std::string("unexpected '") + c + "'";
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  std::string out = c == 0 ? "NUL byte 0x" : byte < 0x80 ? "control byte 0x" : "unexpected byte 0x";
  out += kDigits[byte / 16];
  out += kDigits[byte % 16];
  return out + " in the text";
}

}  // namespace collet
