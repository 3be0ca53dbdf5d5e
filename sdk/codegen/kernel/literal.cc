// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/kernel/literal.h"

#include <collet/types.h>

#include <bit>
#include <charconv>
#include <cmath>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/kernel/float_format.h"

namespace collet::codegen {
namespace {

uint64_t low_bits(uint64_t bits, unsigned width) {
  return width >= 64 ? bits : bits & ((uint64_t{1} << width) - 1);
}

template <typename T>
std::string decimal(T x) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, x);
  return {text, end.ptr};
}

std::string hexadecimal(uint64_t bits) {
  char text[32] = "0x";
  const auto end = std::to_chars(text + 2, text + sizeof text, bits, 16);
  return {text, end.ptr};
}

template <typename T>
bool read_all(std::string_view text, T& x) {
  const auto end = std::from_chars(text.data(), text.data() + text.size(), x);
  return end.ec == std::errc() && end.ptr == text.data() + text.size();
}

/// Returns a finite number of a float type as decimal digits, and an empty string for other values.
std::string print_float(uint32_t type, uint64_t bits) {
  if (type == COLLET_TYPE_F64) {
    const auto x = std::bit_cast<double>(bits);
    return std::isfinite(x) ? decimal(x) : std::string();
  }
  if (type == COLLET_TYPE_F32) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    return std::isfinite(x) ? decimal(x) : std::string();
  }
  const double x = decode_float(bits, float_format(type));
  return std::isfinite(x) ? decimal(static_cast<float>(x)) : std::string();
}

std::string print_number(uint32_t type, uint64_t bits) {
  const unsigned width = 8 * collet_type_bytes(type);
  bits = low_bits(bits, width);
  switch (collet_type_kind(type)) {
    case COLLET_KIND_PRED:
      if (bits <= 1) return bits == 1 ? "true" : "false";
      break;
    case COLLET_KIND_SIGNED:
      return decimal(static_cast<int64_t>(bits << (64 - width)) >> (64 - width));
    case COLLET_KIND_UNSIGNED:
      return decimal(bits);
    case COLLET_KIND_FLOAT: {
      std::string text = print_float(type, bits);
      // NaN and values with several encodings do not survive the round trip, so they are not printed as numbers.
      uint64_t again = 0;
      if (!text.empty() && parse_number(type, text, again) && again == bits) return text;
      break;
    }
    default:
      break;
  }
  return hexadecimal(bits);
}

bool parse_float(uint32_t type, std::string_view text, uint64_t& bits) {
  if (type == COLLET_TYPE_F32) {
    float x = 0;
    if (!read_all(text, x) || !std::isfinite(x)) return false;
    bits = std::bit_cast<uint32_t>(x);
    return true;
  }
  double x = 0;
  if (!read_all(text, x) || !std::isfinite(x)) return false;
  if (type == COLLET_TYPE_F64) {
    bits = std::bit_cast<uint64_t>(x);
    return true;
  }
  bits = encode_float(x, float_format(type));
  return std::isfinite(decode_float(bits, float_format(type)));
}

}  // namespace

std::string print_element(uint32_t type, const std::array<uint64_t, 2>& bits) {
  if (type == COLLET_TYPE_C64) {
    return "(" + print_number(COLLET_TYPE_F32, bits[0]) + ", " + print_number(COLLET_TYPE_F32, bits[0] >> 32) + ")";
  }
  if (type == COLLET_TYPE_C128) {
    return "(" + print_number(COLLET_TYPE_F64, bits[0]) + ", " + print_number(COLLET_TYPE_F64, bits[1]) + ")";
  }
  return print_number(type, bits[0]);
}

bool parse_number(uint32_t type, std::string_view text, uint64_t& bits) {
  type = half_type(type);
  const unsigned width = 8 * collet_type_bytes(type);
  const uint32_t kind = collet_type_kind(type);
  if (width == 0) return false;
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
    const auto end = std::from_chars(text.data(), text.data() + text.size(), bits, 16);
    return end.ec == std::errc() && end.ptr == text.data() + text.size() && low_bits(bits, width) == bits;
  }
  switch (kind) {
    case COLLET_KIND_PRED:
      bits = text == "true" ? 1 : 0;
      return text == "true" || text == "false";
    case COLLET_KIND_SIGNED: {
      int64_t x = 0;
      if (!read_all(text, x)) return false;
      bits = low_bits(static_cast<uint64_t>(x), width);
      return static_cast<int64_t>(bits << (64 - width)) >> (64 - width) == x;
    }
    case COLLET_KIND_UNSIGNED:
      return read_all(text, bits) && low_bits(bits, width) == bits;
    case COLLET_KIND_FLOAT:
      return parse_float(type, text, bits);
    default:
      return false;
  }
}

}  // namespace collet::codegen
