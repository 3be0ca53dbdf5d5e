// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "sdk/pjrt/api/base.h"

namespace collet::pjrt {

/// Returns libcollet's number of an element type; COLLET_TYPE_INVALID if it has none.
uint32_t to_collet(PJRT_Buffer_Type type);
/// Returns PJRT's number of an element type; INVALID if it has none.
PJRT_Buffer_Type from_collet(uint32_t type);
/// Returns the numbers rank - 1, ..., 1, 0, the row-major order of all arrays here. The memory is static; null if the
/// rank exceeds kMaxRank.
const int64_t* descending(size_t rank);
/// Highest rank that PJRT callers may use here.
constexpr size_t kMaxRank = 256;

}  // namespace collet::pjrt
