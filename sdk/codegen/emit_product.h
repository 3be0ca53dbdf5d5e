// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/Module.h>

#include <string>

#include "sdk/codegen/contraction.h"

namespace collet::codegen {

/// A name that no other micro-kernel has.
std::string name_of(const MicroKernel& kernel);

/// Adds a MicroFunction to the module, with an epilogue unless that is null.
llvm::Function* emit_micro_kernel(const MicroKernel& kernel, const Epilogue* epilogue, llvm::Module& module,
                                  const Target& target, const std::string& name);

}  // namespace collet::codegen
