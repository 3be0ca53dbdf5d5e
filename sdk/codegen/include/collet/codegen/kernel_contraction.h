// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Sums of products: the kernels that matrix instructions, micro-kernels and libraries compute.

#include <collet/codegen/kernel.h>

#include <cstdint>
#include <optional>

namespace collet::codegen {

/// What a kernel that sums products of two factors over its inner loops has, whatever op it came from. Sets of loops are bit sets, so the
/// kernel has at most 64 loops.
struct Contraction {
  const Reduction* sum = nullptr;
  ExprId a = kNoExpr;  ///< the factors, as they are multiplied: in the type of the sum
  ExprId b = kNoExpr;
  uint64_t of_a = 0;  ///< loops that factor `a` depends on
  uint64_t of_b = 0;
  uint64_t rows = 0;       ///< outer loops that only `a` depends on
  uint64_t columns = 0;    ///< outer loops that only `b` depends on
  uint64_t batch = 0;      ///< the other outer loops
  uint64_t depth = 0;      ///< the inner loops
  bool from_zero = false;  ///< whether the sum starts at zero
  uint32_t type() const { return sum->types[0]; }
};

/// Returns what a kernel sums if its only reduction adds products over all points of the inner loops, and it has neither a scan nor
/// updates. Nullopt for any other kernel. Pointers lead into `kernel`.
std::optional<Contraction> find_contraction(const Kernel& kernel);

/// True if `e` is a constant of which all bits are zero.
bool is_zero_constant(const Expr& e);

/// Returns the argument if `e` is a conversion to `type`, else `e`.
ExprId before_conversion(const Kernel& kernel, ExprId e, uint32_t type);

/// Returns `e` if it is a load that no mask guards and whose address is affine in the loops; else null.
const Expr* plain_load(const Kernel& kernel, ExprId e);

/// True if the kernel has one store, which writes the result of a reduction, converted or not, at an affine address and without a mask.
bool stores_sum(const Kernel& kernel);

}  // namespace collet::codegen
