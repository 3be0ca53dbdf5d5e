// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace collet::hlo {

/// Element types; the numbers of types.def, which are XLA's. Tuple and Buffer exist only in shapes.
enum class Type : uint8_t {
  Invalid = 0,
#define COLLET_TYPE(NAME, text, value, bits, kind, since) NAME = value,
#include <collet/types.def>
  Tuple = 13,
  Buffer = 34,
};

enum class Kind : uint8_t {
  Pred = COLLET_KIND_PRED,
  Signed = COLLET_KIND_SIGNED,
  Unsigned = COLLET_KIND_UNSIGNED,
  Float = COLLET_KIND_FLOAT,
  Complex = COLLET_KIND_COMPLEX,
  Opaque = COLLET_KIND_OPAQUE,
};

struct TypeInfo {
  std::string_view text;
  uint16_t bits = 0;
  Kind kind = Kind::Opaque;
  uint16_t since = 0;
  int bytes() const { return (bits + 7) / 8; }
};

/// Returns the row of types.def; its fields are empty for Invalid, Tuple and Buffer.
const TypeInfo& type_info(Type type);
/// Converts "f32" to Type::F32.
std::optional<Type> type_from_text(std::string_view text);

inline Kind kind_of(Type t) {
  return type_info(t).kind;
}
inline bool is_float(Type t) {
  return kind_of(t) == Kind::Float;
}
inline bool is_complex(Type t) {
  return kind_of(t) == Kind::Complex;
}
inline bool is_signed(Type t) {
  return kind_of(t) == Kind::Signed;
}
inline bool is_unsigned(Type t) {
  return kind_of(t) == Kind::Unsigned;
}
inline bool is_integer(Type t) {
  return is_signed(t) || is_unsigned(t);
}
/// Returns F32 for C64, F64 for C128, and other types unchanged.
inline Type real_type(Type t) {
  return t == Type::C64 ? Type::F32 : t == Type::C128 ? Type::F64 : t;
}

}  // namespace collet::hlo
