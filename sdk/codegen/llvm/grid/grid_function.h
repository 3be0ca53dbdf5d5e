// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/target.h>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sdk/codegen/schedule/grid_radix.h"
#include "sdk/codegen/schedule/grid_sort.h"

namespace collet::codegen {

/// Adds an empty function that the host starts as a grid, in blocks of at most `block_threads` threads. If
/// `resident_blocks` is not 0, threads use so few registers that a processor can run as many blocks at a time.
llvm::Function* make_grid_function(llvm::Module& module, const Target& target, const std::string& name,
                                   const std::vector<llvm::Type*>& parameters, uint32_t block_threads,
                                   uint32_t resident_blocks = 0);

/// Adds shared memory for `elements` elements, aligned to 16 bytes, that the threads of a block of `function` share.
llvm::GlobalVariable* make_shared_array(llvm::Function* function, llvm::Type* element, int64_t elements);

/// Returns the shared memory whose size the host sets when it starts `function`, aligned to 16 bytes.
llvm::GlobalVariable* make_given_array(llvm::Function* function);

/// Emits a barrier for all threads of the block.
void emit_barrier(llvm::IRBuilder<>& at);

/// Emits a barrier for all threads of the warp.
void emit_warp_barrier(llvm::IRBuilder<>& at);

/// Return the number of the thread in its block, and of the block in the grid, as i64.
llvm::Value* emit_thread_number(llvm::IRBuilder<>& at);
llvm::Value* emit_block_number(llvm::IRBuilder<>& at);

/// Adds a kernel of a sort, see GridSort.
llvm::Function* emit_grid_sort(const GridSort& sort, llvm::Module& module, const Target& target,
                               const std::string& name);

/// Adds a kernel of a radix sort, see GridRadix.
llvm::Function* emit_grid_radix(const GridRadix& radix, llvm::Module& module, const Target& target,
                                const std::string& name);

}  // namespace collet::codegen
