// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/Module.h>

#include <string>

#include "sdk/codegen/tape.h"
#include "sdk/codegen/target.h"

namespace collet::codegen {

/// A compiled kernel: the addresses of its buffers, and the range of loop 0 that this call walks. A sequential kernel
/// must be given the whole range; one without loops ignores it.
using KernelFunction = void (*)(char* const* buffers, int64_t begin, int64_t end);

/// Tells LLVM which processor a function is for.
void set_function_attributes(llvm::Function* function, const Target& target);

/// Adds the kernel to the module as a function of that type.
llvm::Function* emit_kernel(const Kernel& kernel, llvm::Module& module, const Target& target, const std::string& name);

/// The body of a comparison or another scalar computation, as
/// uint8_t name(char* const* buffers, int64_t i, int64_t j): argument 2k is buffer k's element i, 2k + 1 its element j.
llvm::Function* emit_comparator(const ScalarBody& body, const std::vector<uint32_t>& types, llvm::Module& module,
                                const Target& target, const std::string& name);

}  // namespace collet::codegen
