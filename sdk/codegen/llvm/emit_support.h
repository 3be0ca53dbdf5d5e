// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/target.h>

#include <llvm/IR/Module.h>

namespace collet::codegen {

/// Defines, for this module alone, the function collet_reduce_quarter where it is called:
///
///     void collet_reduce_quarter(const double* x, int64_t count, double* high, double* low, int64_t* quarter)
///
/// reduces `count` doubles modulo pi / 2, whatever their size: x = quarter * pi / 2 + high + low.
void define_support(llvm::Module& module, const Target& target);

}  // namespace collet::codegen
