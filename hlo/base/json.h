// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace collet {

/// Writes JSON piece by piece into a string, with commas and indentation where they belong. The caller opens and closes
/// in the right order; nothing else is checked.
///
///     JsonWriter json(out);
///     json.begin_object().field("name", "add").key("dims").begin_array().value(2).value(3).end_array().end_object();
class JsonWriter {
 public:
  /// `indent`: number of spaces per level; 0 writes everything on one line.
  explicit JsonWriter(std::string& out, int indent = 2) : out_(out), indent_(indent) {}

  JsonWriter& begin_object() { return begin('{'); }
  JsonWriter& end_object() { return end('}'); }
  JsonWriter& begin_array() { return begin('['); }
  JsonWriter& end_array() { return end(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool truth) { return raw(truth ? "true" : "false"); }
  /// Writes the shortest form that reads back the same; NaN and infinities, which JSON lacks, are written as strings.
  JsonWriter& value(double number);
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  JsonWriter& value(T number) {
    return raw(std::to_string(number));
  }
  JsonWriter& null() { return raw("null"); }
  /// Writes `text`, which must be valid JSON, unchanged.
  JsonWriter& raw(std::string_view text);

  template <typename T>
  JsonWriter& field(std::string_view name, const T& what) {
    return key(name).value(what);
  }

 private:
  JsonWriter& begin(char bracket);
  JsonWriter& end(char bracket);
  void separate();
  void new_line();

  std::string& out_;
  int indent_;
  int depth_ = 0;
  bool first_ = true;
  bool after_key_ = false;
};
/// Returns `text` in quotes, with escapes; bytes that are not valid UTF-8 become U+FFFD.
std::string json_quote(std::string_view text);

}  // namespace collet
