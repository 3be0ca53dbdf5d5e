// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reference_backends/gpu/emulator/launch.h"
#include "reference_backends/gpu/emulator/ptx.h"

namespace llvm {
class Module;
}

namespace collet::gpu::emulator {

/// The addresses and offsets of a module's variables.
struct ModuleLayout {
  std::map<const Variable*, uint64_t> global;  ///< addresses in device memory
  /// Offsets in shared memory; variables whose length the launch determines have none.
  std::map<const Variable*, uint32_t> shared;
  std::map<const Variable*, uint32_t> local;          ///< offsets in local memory
  std::map<const Function*, uint32_t> static_shared;  ///< bytes of shared memory that each kernel declares
  uint32_t local_bytes = 0;                           ///< bytes of local memory for all functions together
};

/// Assigns addresses to all variables. `allocate` returns device memory. Throws PtxError.
ModuleLayout lay_out(const Module& module, const std::function<uint64_t(const Variable&)>& allocate);

/// Facts about a function after its translation.
struct FunctionFacts {
  std::string symbol;  ///< name in the LLVM module
  bool meets = false;
  bool uses_shared = false;
};

/// Emits a function void(Thread*) for each kernel, and the functions that they call. Returns facts about the kernels by
/// their names. Throws PtxError.
std::map<std::string, FunctionFacts> translate(const Module& module, const ModuleLayout& layout, llvm::Module& out);

/// Returns the layout in memory of a kernel's parameters.
std::vector<Kernel::Parameter> parameters_of(const Function& function, uint32_t& bytes);

}  // namespace collet::gpu::emulator
