// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/target.h>

#include <llvm/IR/Module.h>

namespace collet::codegen {

/// Defines, as internal functions of the module, those of the following functions that it calls:
///
///     void collet_reduce_quarter(const double* x, int64_t count, double* high, double* low, int64_t* quarter)
///
/// reduces `count` doubles of any size modulo pi / 2: x = quarter * pi / 2 + high + low.
///
///     double collet_fmod(double x, double y)
///
/// is C's fmod, for machines that call no function of C's library.
void define_support(llvm::Module& module, const Target& target);

}  // namespace collet::codegen
