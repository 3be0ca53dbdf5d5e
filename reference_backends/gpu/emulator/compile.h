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

/// A module as host code. Its variables lie in device memory that its owner frees.
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
  unsigned target = 0;  ///< 80 for sm_80
};

struct DeviceVariables {
  /// Room for a variable; 0 where there is none.
  std::function<uint64_t(uint64_t bytes)> allocate;
  std::function<void(uint64_t address, const void* bytes, uint64_t size)> write;
};

/// Compiles a PTX text for the host. Null and a message that names the line where the text is wrong or has what the emulator
/// does not know; what was allocated stays in `allocations`.
std::unique_ptr<CompiledModule> compile_module(std::string_view text, const DeviceVariables& variables,
                                               std::vector<uint64_t>& allocations, std::string& problem);

}  // namespace collet::gpu::emulator
