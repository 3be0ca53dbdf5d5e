// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/status.h>

#include <string>

namespace llvm {
class Module;
}

namespace collet::codegen {

/// The first version of LLVM whose text has pointers without types, as ours has.
inline constexpr int kFirstLlvmVersion = 15;

/// Prints a module as text that version `version` of LLVM reads; it changes the module. UNIMPLEMENTED for a version that is older than
/// kFirstLlvmVersion or newer than the LLVM of this library, and for a module with what that version does not have.
Status print_for_version(llvm::Module& module, int version, std::string& out);

}  // namespace collet::codegen
