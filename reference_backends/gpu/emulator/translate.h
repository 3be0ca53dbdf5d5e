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

/// The places of a module's variables.
struct ModuleLayout {
  std::map<const Variable*, uint64_t> global;         ///< addresses in device memory
  std::map<const Variable*, uint32_t> shared;         ///< offsets; none for those whose length the launch says
  std::map<const Variable*, uint32_t> local;          ///< offsets
  std::map<const Function*, uint32_t> static_shared;  ///< bytes, by kernel
  uint32_t local_bytes = 0;                           ///< of all functions together
};

/// Places all variables; `allocate` gives device memory. Throws PtxError.
ModuleLayout lay_out(const Module& module, const std::function<uint64_t(const Variable&)>& allocate);

/// Facts about a function after its translation.
struct FunctionFacts {
  std::string symbol;  ///< in the LLVM module
  bool meets = false;
  bool uses_shared = false;
};

/// Writes a function void(Thread*) for each entry, by its name, and those that they call. Throws PtxError.
std::map<std::string, FunctionFacts> translate(const Module& module, const ModuleLayout& layout, llvm::Module& out);

/// The kernel's parameters as they lie in memory.
std::vector<Kernel::Parameter> parameters_of(const Function& function, uint32_t& bytes);

}  // namespace collet::gpu::emulator
