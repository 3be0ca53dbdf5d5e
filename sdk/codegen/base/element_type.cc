// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/base/element_type.h"

#include <collet/types.h>

#include <algorithm>

namespace collet::codegen {

bool is_narrow_float(uint32_t type) {
  return collet_type_kind(type) == COLLET_KIND_FLOAT && type != COLLET_TYPE_F32 && type != COLLET_TYPE_F64;
}

int type_bits(uint32_t type) {
  switch (type) {
#define COLLET_TYPE(NAME, text, value, bits, kind, since) \
  case value:                                             \
    return bits;
#include <collet/types.def>
    default:
      return 0;
  }
}

int compute_bytes(uint32_t type) {
  if (is_narrow_float(type)) return 4;
  if (type == COLLET_TYPE_C64) return 4;
  if (type == COLLET_TYPE_C128) return 8;
  return std::max<int>(1, static_cast<int>(collet_type_bytes(type)));
}

uint32_t half_type(uint32_t type) {
  if (type == COLLET_TYPE_C64) return COLLET_TYPE_F32;
  return type == COLLET_TYPE_C128 ? uint32_t{COLLET_TYPE_F64} : type;
}

}  // namespace collet::codegen
