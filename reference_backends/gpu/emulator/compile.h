// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reference_backends/gpu/emulator/launch.h"
#include "reference_backends/gpu/emulator/ptx.h"

namespace collet::gpu::emulator {

/// A PTX module, compiled to host code. Its variables are in device memory, which the owner of the module frees.
class CompiledModule {
 public:
  virtual ~CompiledModule() = default;

  std::map<std::string, std::unique_ptr<Kernel>> kernels;
  struct Global {
    uint64_t address = 0, bytes = 0;
  };
  std::map<std::string, Global> globals;
  std::vector<uint64_t> allocations;
  unsigned ptx_version = 0;
  unsigned target = 0;  ///< compute capability of the .target directive, 80 for sm_80
};

struct DeviceVariables {
  /// Allocates device memory for a variable; returns 0 if there is none.
  std::function<uint64_t(uint64_t bytes)> allocate;
  std::function<void(uint64_t address, const void* bytes, uint64_t size)> write;
};

/// Compiles a PTX text for the host. If the text is invalid or has an unsupported instruction, returns null and sets
/// `problem` to a message with the line. The memory that was allocated is added to `allocations` in any case.
std::unique_ptr<CompiledModule> compile_module(std::string_view text, const DeviceVariables& variables,
                                               std::vector<uint64_t>& allocations, std::string& problem);

}  // namespace collet::gpu::emulator
