// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/Module.h>

#include "sdk/codegen/schedule/target.h"

namespace collet::codegen {

/// Defines, for this module alone, the functions of support.h that it calls: for code that runs where they are not.
void define_support(llvm::Module& module, const Target& target);

}  // namespace collet::codegen
