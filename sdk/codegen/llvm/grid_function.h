// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/target.h>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sdk/codegen/schedule/grid_sort.h"

namespace collet::codegen {

/// Adds an empty function that the host starts as a grid, in blocks of at most so many threads.
llvm::Function* make_grid_function(llvm::Module& module, const Target& target, const std::string& name,
                                   const std::vector<llvm::Type*>& parameters, uint32_t block_threads);

/// New memory for so many elements, at a multiple of 16 bytes, that the threads of a block of `function` share.
llvm::GlobalVariable* make_shared_array(llvm::Function* function, llvm::Type* element, int64_t elements);

/// The shared memory that a block of `function` gets when it is started, at a multiple of 16 bytes.
llvm::GlobalVariable* make_given_array(llvm::Function* function);

/// Waits for all threads of the block.
void emit_barrier(llvm::IRBuilder<>& at);

/// The number of the thread in its block, or of the block, as i64.
llvm::Value* emit_thread_number(llvm::IRBuilder<>& at);
llvm::Value* emit_block_number(llvm::IRBuilder<>& at);

/// Adds a kernel of a sort, see GridSort.
llvm::Function* emit_grid_sort(const GridSort& sort, llvm::Module& module, const Target& target,
                               const std::string& name);

}  // namespace collet::codegen
