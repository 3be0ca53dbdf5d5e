// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/program.h>

#include "hlo/base/status.h"

namespace collet::hlo {

/// A region of a program lies in at most so many others: readers may recur.
inline constexpr uint32_t kDeepestRegion = 200;

/// Whether `size` bytes are a program that may be walked: every offset, range and index lies inside, every value is
/// defined before its use, regions form a tree, attribute records and constants are whole, reserved fields are zero. Says
/// nothing of what the ops mean: read_program and the verifier do.
Status check_program(const void* bytes, size_t size);

}  // namespace collet::hlo
