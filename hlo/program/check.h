// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/program.h>

#include "hlo/base/status.h"

namespace collet::hlo {

/// The deepest nesting of regions, which allows readers to use recursion.
inline constexpr uint32_t kDeepestRegion = 200;

/// Checks that `size` bytes are a program that can be read safely: every offset, range and index is in bounds, every
/// value is defined before its use, regions form a tree, attribute records and constants are complete, and reserved
/// fields are zero. It does not check the rules of the ops; read_program and the verifier do.
Status check_program(const void* bytes, size_t size);

}  // namespace collet::hlo
