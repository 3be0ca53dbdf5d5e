// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/target.h>

#include <llvm/IR/Module.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sdk/codegen/schedule/grid_sort.h"

namespace collet::codegen {

/// Adds an empty function that the host starts as a grid, in blocks of at most so many threads.
llvm::Function* make_grid_function(llvm::Module& module, const Target& target, const std::string& name,
                                   const std::vector<llvm::Type*>& parameters, uint32_t block_threads);

/// Adds a kernel of a sort, see GridSort.
llvm::Function* emit_grid_sort(const GridSort& sort, llvm::Module& module, const Target& target,
                               const std::string& name);

}  // namespace collet::codegen
