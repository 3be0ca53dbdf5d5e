// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// \file
/// Functions that code generation uses to describe element types: widths, the type that computes them, halves of
/// complex types.

namespace collet::codegen {

/// Returns the number of bits of one element of `type`. It is less than 8 times its bytes for a sub-byte type, and 0
/// for an unknown type.
int type_bits(uint32_t type);

/// Returns the number of bytes that one element of `type` has in a register while it is computed with.
int compute_bytes(uint32_t type);

/// True for a float type whose ops are computed in f32 and rounded to the type after each op.
bool is_narrow_float(uint32_t type);

/// Returns the type of the real part of a complex type, and any other type unchanged.
uint32_t half_type(uint32_t type);

}  // namespace collet::codegen
