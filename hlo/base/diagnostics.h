// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/base/status.h"

namespace collet {

/// A complaint with its place. Lines and columns count from 1; 0 where there is none.
struct Diagnostic {
  uint32_t line = 0;
  uint32_t column = 0;
  std::string message;
  std::string source;  ///< the line's text, for the caret
};

/// The complaints of a reader: several in one run, up to a limit.
class Diagnostics {
 public:
  explicit Diagnostics(std::string file = {}, size_t limit = 20) : file_(std::move(file)), limit_(limit) {}

  void add(Diagnostic diagnostic);
  bool full() const { return list_.size() >= limit_; }
  bool empty() const { return list_.empty(); }
  const std::vector<Diagnostic>& list() const { return list_; }
  const std::string& file() const { return file_; }

  /// Gives complaints that name a line alone its text and the place where it begins; `text` is what was read.
  void show_source(std::string_view text);

  /// "file:line:column: error: message", the source line and a caret, for each.
  std::string to_string() const;
  /// OK when there is none; else INVALID_ARGUMENT with to_string().
  Status to_status() const;

 private:
  std::string file_;
  size_t limit_;
  std::vector<Diagnostic> list_;
};

/// The candidate nearest to `name` in edit distance, or empty when none is near (at most a third of its length away).
std::string_view nearest_spelling(std::string_view name, const std::vector<std::string_view>& candidates);

/// Returns the message for a character that no token begins with: "unexpected '@'", "control byte 0x01 in the text", ...
std::string stray_byte(char c);

}  // namespace collet
