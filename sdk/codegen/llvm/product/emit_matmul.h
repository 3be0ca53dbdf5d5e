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

/// Adds a MicroFunction that adds the sums of a stored tile of any number of rows to its totals. The rounding errors of these additions
/// become the tile's sums, to which the next blocks of the depth are added (Kahan's sum). After the last block, adds both in the tile.
llvm::Function* emit_fold(const MicroKernel& kernel, llvm::Module& module, const Target& target,
                          const std::string& name);

}  // namespace collet::codegen
