// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "sdk/pjrt/api/base.h"

namespace collet::pjrt {

/// libcollet's number of an element type; COLLET_TYPE_INVALID where it has none.
uint32_t to_collet(PJRT_Buffer_Type type);
/// PJRT's number of an element type; INVALID where it has none.
PJRT_Buffer_Type from_collet(uint32_t type);
/// rank - 1, ..., 1, 0: how all our arrays lie. Static; null past the highest rank.
const int64_t* descending(size_t rank);
/// Highest rank that PJRT callers may use here.
constexpr size_t kMaxRank = 256;

}  // namespace collet::pjrt
