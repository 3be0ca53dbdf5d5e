// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/base/status.h"

namespace collet {

/// An error message with its position. Lines and columns count from 1; 0 means unknown.
struct Diagnostic {
  uint32_t line = 0;
  uint32_t column = 0;
  std::string message;
  std::string source;  ///< the line's text, for the caret
};

/// The error messages of a reader; one run may report several, up to a limit.
class Diagnostics {
 public:
  explicit Diagnostics(std::string file = {}, size_t limit = 20) : file_(std::move(file)), limit_(limit) {}

  void add(Diagnostic diagnostic);
  bool full() const { return list_.size() >= limit_; }
  bool empty() const { return list_.empty(); }
  const std::vector<Diagnostic>& list() const { return list_; }
  const std::string& file() const { return file_; }

  /// Adds the source line and the column of its first character to messages that state only a line; `text` is the text
  /// that was read.
  void show_source(std::string_view text);

  /// Returns "file:line:column: error: message", the source line and a caret, for each message.
  std::string to_string() const;
  /// Returns OK if there is no message; else INVALID_ARGUMENT with to_string().
  Status to_status() const;

 private:
  std::string file_;
  size_t limit_;
  std::vector<Diagnostic> list_;
};

/// Returns the candidate with the smallest edit distance to `name`, or an empty text if all are farther away than a
/// third of its length.
std::string_view nearest_spelling(std::string_view name, const std::vector<std::string_view>& candidates);

/// Returns the message for a character that no token begins with: "unexpected '@'", "control byte 0x01 in the text", ...
std::string stray_byte(char c);

}  // namespace collet
