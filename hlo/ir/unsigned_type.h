// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/ir/types.h"

namespace collet::hlo {

/// Returns the unsigned integer type of a width; Invalid if there is none.
inline Type unsigned_type(int bits) {
  switch (bits) {
    case 1:
      return Type::U1;
    case 2:
      return Type::U2;
    case 4:
      return Type::U4;
    case 8:
      return Type::U8;
    case 16:
      return Type::U16;
    case 32:
      return Type::U32;
    case 64:
      return Type::U64;
    default:
      return Type::Invalid;
  }
}

}  // namespace collet::hlo
