// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace collet::gpu::emulator {

struct Token {
  enum class Kind : uint8_t { kEnd, kName, kDotName, kInteger, kFloat, kString, kPunctuation };
  Kind kind = Kind::kEnd;
  std::string_view text;  ///< without the dot for kDotName, without quotes for kString
  uint64_t integer = 0;   ///< kInteger: the value; kFloat: the bits of a double
  bool is_f32 = false;    ///< for kFloat: true if it is written as 0f..., as the bits of an f32
  uint32_t f32 = 0;
  int line = 1;
  bool after_space = false;
};

/// Splits a PTX text into tokens; the last one is kEnd. Throws PtxError.
std::vector<Token> lex_ptx(std::string_view text);

}  // namespace collet::gpu::emulator
