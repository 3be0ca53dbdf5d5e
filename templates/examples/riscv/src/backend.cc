// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "device.h"

namespace riscv {

namespace kernel = collet::kernel;
namespace codegen = collet::codegen;

namespace {

uint64_t number(const kernel::Options& options, const std::string& key, uint64_t otherwise, uint64_t least,
                uint64_t most) {
  const auto found = options.values.find(key);
  if (found == options.values.end()) return otherwise;
  char* end = nullptr;
  const uint64_t out = std::strtoull(found->second.c_str(), &end, 10);
  if (end == found->second.c_str() || *end != 0 || out < least || out > most) {
    throw kernel::Error(COLLET_INVALID_ARGUMENT, "the option " + key + " is a number from " + std::to_string(least) +
                                                     " to " + std::to_string(most) + ", not '" + found->second + "'");
  }
  return out;
}

std::string text(const kernel::Options& options, const std::string& key) {
  const auto found = options.values.find(key);
  return found == options.values.end() ? std::string() : found->second;
}

void configure(const kernel::Options& options, kernel::Backend* mine) {
  constexpr uint64_t kMostMebibytes = uint64_t{1} << 16;
  if (options.device_count > 8) throw kernel::Error(COLLET_INVALID_ARGUMENT, "there are at most 8 devices");
  if (options.device_count != 0) mine->device_count = options.device_count;
  Settings settings;
  settings.emulator = text(options, "qemu");
  settings.program = text(options, "program");
  settings.vlen = static_cast<uint32_t>(number(options, "vlen", settings.vlen, 128, 1024));
  if ((settings.vlen & (settings.vlen - 1)) != 0) {
    throw kernel::Error(COLLET_INVALID_ARGUMENT, "the option vlen is a power of two");
  }
  settings.memory_bytes = number(options, "memory_mib", settings.memory_bytes >> 20, 1, kMostMebibytes) << 20;
  settings.fail_at = number(options, "fail_at", 0, 0, UINT64_MAX);
  mine->memory_bytes = settings.memory_bytes;
  mine->open_device = [settings](uint32_t) { return std::make_unique<Device>(settings); };
  codegen::set_code(mine, codegen::cross("riscv64"));
}

}  // namespace

kernel::Backend describe() {
  kernel::Backend backend;
  backend.name = "riscv";
  backend.version = "0.1.0";
  backend.opset = 1;
  backend.device_kind = "RISC-V with vectors, emulated";
  backend.fingerprint = ";riscv-1";
  backend.queues = true;
  backend.options = {"qemu",        // the emulator: a path or a name
                     "program",     // the program that runs on the device
                     "vlen",        // bits of a vector register; the same code runs with all lengths
                     "memory_mib",  // memory of the device in MiB
                     // Number, from 1, of the command of each device that fails, to test how failures are reported.
                     "fail_at"};
  backend.configure = configure;
  return backend;
}

}  // namespace riscv

COLLET_KERNEL_BACKEND(riscv::describe)
