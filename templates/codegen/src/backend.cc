// SPDX-License-Identifier: Apache-2.0
#include "device.h"

namespace acme {

collet::kernel::Backend describe() {
  collet::kernel::Backend backend;
  backend.name = "acme";
  backend.version = "0.1.0";
  backend.opset = 1;
  backend.device_kind = "Acme stand-in";
  backend.fingerprint = ";acme-0";
  backend.queues = true;
  backend.open_device = [](uint32_t) { return std::make_unique<Device>(); };
  // The target for which code is generated. This stand-in runs code on the host's processor. For your device, name its processor
  // as LLVM does:
  //     collet::codegen::Target target = collet::codegen::cross("riscv64:sifive-x280");
  // and set what LLVM does not know: target.second_cache, target.flops_per_ns, target.memory_bytes_per_ns.
  const collet::codegen::Target target = collet::codegen::host_target();
  collet::codegen::set_code(&backend, target);
  return backend;
}

}  // namespace acme

COLLET_KERNEL_BACKEND(acme::describe)
