// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace collet::hlo {

/// Reads parts of HLO text that a module keeps as text. Each `eat` consumes its argument if it comes next, or nothing.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool at_end() {
    blanks();
    return rest_.empty();
  }
  bool is(char c) {
    blanks();
    return rest_.starts_with(c);
  }
  bool eat(char c) {
    if (!is(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool eat(std::string_view word) {
    blanks();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool number(int64_t& out) {
    blanks();
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), out);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return true;
  }
  /// Reads numbers separated by commas, up to and including `close`.
  template <typename Field>
  bool numbers(char close, Field* out) {
    while (!eat(close)) {
      int64_t value = 0;
      if (!number(value)) return false;
      out->Add(static_cast<std::decay_t<decltype((*out)[0])>>(value));
      eat(',');
    }
    return true;
  }
  /// Reads a word of letters, digits and '_'.
  std::string_view word() {
    blanks();
    const auto is_letter = [](char c) { return ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_'; };
    size_t n = 0;
    while (n < rest_.size() && (is_letter(rest_[n]) || (rest_[n] >= '0' && rest_[n] <= '9'))) ++n;
    return take(n);
  }
  /// Reads a quoted string; C escapes are resolved if `quote` is a double quote.
  bool quoted(char quote, std::string& out) {
    if (!eat(quote)) return false;
    while (!rest_.empty() && rest_[0] != quote) out += escaped(quote == '"');
    if (rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }
  /// Reads a quoted string without resolving escapes.
  bool quoted(char quote, std::string_view& out) {
    if (!eat(quote)) return false;
    const size_t end = rest_.find(quote);
    if (end == std::string_view::npos) return false;
    out = take(end);
    rest_.remove_prefix(1);
    return true;
  }
  /// Reads from an opening brace to the matching closing brace.
  bool braces(std::string_view& out) {
    blanks();
    int depth = 0;
    for (size_t i = 0; i < rest_.size(); ++i) {
      const char c = rest_[i];
      if (c == '"' || c == '\'') {
        while (++i < rest_.size() && rest_[i] != c) i += c == '"' && rest_[i] == '\\';
        continue;
      }
      depth += (c == '{') - (c == '}');
      if (depth > 0) continue;
      out = take(c == '}' ? i + 1 : 0);
      return !out.empty();
    }
    return false;
  }

 private:
  void blanks() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n' || rest_[0] == '\t' || rest_[0] == '\r'))
      rest_.remove_prefix(1);
  }
  std::string_view take(size_t n) {
    const std::string_view out = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return out;
  }
  char escaped(bool escapes) {
    char c = take(1)[0];
    if (!escapes || c != '\\' || rest_.empty()) return c;
    if (rest_[0] >= '0' && rest_[0] <= '7') {
      int value = 0;
      for (int i = 0; i < 3 && !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '7'; ++i)
        value = value * 8 + take(1)[0] - '0';
      return static_cast<char>(value);
    }
    c = take(1)[0];
    return c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
  }

  std::string_view rest_;
};

}  // namespace collet::hlo
