// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/Module.h>

#include <string>

#include "sdk/codegen/matmul/matmul.h"

namespace collet::codegen {

/// Adds a MicroFunction to the module. Unless `epilogue` is null, it is applied to the sums in registers.
llvm::Function* emit_micro_kernel(const MicroKernel& kernel, const Epilogue* epilogue, llvm::Module& module,
                                  const Target& target, const std::string& name);

/// Adds a MicroFunction that applies the epilogue to a stored tile of any number of rows.
llvm::Function* emit_epilogue(const MicroKernel& kernel, const Epilogue& epilogue, llvm::Module& module,
                              const Target& target, const std::string& name);

}  // namespace collet::codegen
