// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/target.h>

#include <llvm/IR/Module.h>

#include <string>

#include "sdk/codegen/matmul/blocked_product.h"

namespace collet::codegen {

/// Adds the product to the module as a KernelFunction whose range are the jobs. The functions that it calls are in the module, or are
/// declared.
void emit_product(const BlockedProduct& product, llvm::Module& module, const Target& target, const std::string& name);

}  // namespace collet::codegen
