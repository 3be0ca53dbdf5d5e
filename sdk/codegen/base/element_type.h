// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// \file
/// What code generation asks of element types.

namespace collet::codegen {

/// Bits of one element of `type`, less than those of its bytes where it is a sub-byte type; 0 for unknown types.
int type_bits(uint32_t type);

/// Bytes of one element of `type` while it is computed with.
int compute_bytes(uint32_t type);

/// True where a float type is computed as f32 and rounded after each op.
bool is_narrow_float(uint32_t type);

/// The type of one half of a complex type; other types as they are.
uint32_t half_type(uint32_t type);

}  // namespace collet::codegen
