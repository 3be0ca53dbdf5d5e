// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/target.h>

#include <llvm/IR/Module.h>

namespace collet::codegen {

/// Defines, for this module alone, the functions of support.h that it calls: for code that runs where they are not.
void define_support(llvm::Module& module, const Target& target);

}  // namespace collet::codegen
