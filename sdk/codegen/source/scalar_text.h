// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/kernel.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sdk/codegen/source/text.h"

/// \file
/// Writes elements and ops on them as C. pred is bool; integers have their own width, sub-byte ones are of 8 bits; f32 and f64 are
/// float and double; narrower floats are float, with values rounded to their type; complex numbers are two values.

namespace collet::codegen::source {

/// A computed element. `im` is the imaginary part of a complex one.
struct Val {
  Id v = kNoId;
  Id im = kNoId;
};

/// Returns the C type in which an element (one part of a complex one) is computed, or kept in memory.
std::string value_type(uint32_t type);
std::string memory_type(uint32_t type);

/// Returns a constant from its bits in memory.
Val literal(Function& f, uint32_t type, const std::array<uint64_t, 2>& bits);
/// Returns the value of an element that memory holds as `stored`, of the type memory_type(type), and the reverse.
Id from_memory(Function& f, Id stored, uint32_t type);
Id to_memory(Function& f, Id value, uint32_t type);

/// Returns the result of an elementwise op.
Val scalar_op(Function& f, const Expr& op, const std::vector<Val>& args, const std::vector<uint32_t>& types);
/// Returns the combination of two elements that COLLET_COMBINE_* names. It is not rounded to a narrow float type.
Val combine(Function& f, uint32_t combine, uint32_t type, const Val& x, const Val& y);
/// Returns what leaves the other operand of a combination unchanged.
Val identity(Function& f, uint32_t combine, uint32_t type);
/// Rounds an element of a narrow float type; returns others unchanged.
Val rounded(Function& f, uint32_t type, const Val& x);

}  // namespace collet::codegen::source
