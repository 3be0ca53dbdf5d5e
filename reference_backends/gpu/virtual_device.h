// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/grid_backend.hpp>

#include <cstring>
#include <string>

namespace collet::gpu {

/// A device without hardware. Programs can be compiled for it, but do not run.
class VirtualDevice final : public codegen::GridDevice {
 public:
  kernel::Memory allocate(uint64_t, uint64_t) override { return 256; }
  void free(kernel::Memory) noexcept override {}
  void write(kernel::Memory, uint64_t, const void*, uint64_t) override {}
  void read(kernel::Memory, uint64_t, void*, uint64_t) override { refuse(); }
  void copy(kernel::Memory, uint64_t, kernel::Memory, uint64_t, uint64_t) override { refuse(); }
  Handle load_module(const std::string&, const std::string&) override { return 1; }
  void unload_module(Handle) noexcept override {}
  Handle find_kernel(Handle, const std::string&) override { return 1; }
  void launch(const Launch&) override { refuse(); }

 private:
  [[noreturn]] static void refuse() {
    throw kernel::Error(COLLET_FAILED_PRECONDITION,
                        "this GPU is virtual: programs are compiled for it, but do not run");
  }
};

}  // namespace collet::gpu
