// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/kernel.h>
#include <collet/codegen/target.h>

#include <llvm/IR/Module.h>

#include <string>

#include "sdk/codegen/base/functions.h"

namespace collet::codegen {

/// Sets the attributes that tell LLVM for which processor a function is compiled.
void set_function_attributes(llvm::Function* function, const Target& target);

/// Returns the type of a KernelFunction.
llvm::FunctionType* kernel_function(llvm::LLVMContext& context);

/// Adds the kernel to the module as a KernelFunction. `whole`: each call runs all iterations of loop 0, so that short
/// loops need no counter, and accesses have constant addresses.
llvm::Function* emit_kernel(const Kernel& kernel, llvm::Module& module, const Target& target, const std::string& name,
                            bool whole = false);

/// Adds a scalar computation, such as the body of a comparison, to the module as a CompareFunction, uint8_t name(char*
/// const* buffers, int64_t i, int64_t j). Argument 2k of the body is element i of buffer k, and argument 2k + 1 its
/// element j.
llvm::Function* emit_comparator(const ScalarBody& body, const std::vector<uint32_t>& types, llvm::Module& module,
                                const Target& target, const std::string& name);

}  // namespace collet::codegen
