// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <span>
#include <string>
#include <string_view>

#include "hlo/ir/literal.h"
#include "hlo/ir/shape.h"

/// \file
/// Appends pieces of HLO text to a string.

namespace collet::hlo::text {

inline void write(std::string& out, int64_t value) {
  char buffer[24];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out.append(buffer, static_cast<size_t>(end - buffer));
}

inline void write_list(std::string& out, std::span<const int64_t> list, char separator = ',') {
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) out += separator;
    write(out, list[i]);
  }
}

/// Appends a list such as "{1,2,3}".
inline void write_braces(std::string& out, std::span<const int64_t> list) {
  out += '{';
  write_list(out, list);
  out += '}';
}

void write_shape(std::string& out, const Shape& shape, bool layouts);
/// Appends the text in quotes, with C escapes.
void write_string(std::string& out, std::string_view text);
/// Appends the shortest text that reads back as the same f64 (f32 if `single`).
void write_real(std::string& out, double value, bool single);
/// Appends a literal. `large`: also if it has more than ten elements. `shaped`: with the shape of every leaf.
void write_literal(std::string& out, const Literal& literal, bool large, bool shaped, bool layouts = true);

}  // namespace collet::hlo::text
