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
  // What the device is like: see <collet/codegen/target.h> for what else there is to tell. The command names the same
  // instructions: code is kept in caches by command and target, so it must run wherever both are the same.
#if defined(__x86_64__)
  const bool avx512 = __builtin_cpu_supports("avx512vl"), avx2 = __builtin_cpu_supports("avx2");
  collet::codegen::Target target = collet::codegen::vector_machine(8, avx512 ? 32 : 16);
  target.fma = avx2 && __builtin_cpu_supports("fma");  // a * b + c is one instruction
  const std::string level = avx512 ? "-march=x86-64-v4 " : target.fma ? "-march=x86-64-v3 " : "";
#else
  collet::codegen::Target target = collet::codegen::vector_machine(4, 32);
  target.fma = true;
  const std::string level;
#endif
  // The compiler of the device. This stand-in has that of the host.
  collet::codegen::SourceCompiler compiler;
  compiler.command = "cc -std=c99 -O2 -ftree-vectorize -fvect-cost-model=dynamic " + level +
                     "-ffp-contract=off -fno-math-errno -fno-trapping-math -shared -fPIC -o {out} {in} -lm";
  target.routines = true;  // only for a device that runs code in this process, as this stand-in does
  collet::codegen::set_source(&backend, target, compiler);
  return backend;
}

}  // namespace acme

COLLET_KERNEL_BACKEND(acme::describe)
